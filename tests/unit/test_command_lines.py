"""Command lines of the controller's programs: what has to be there, what is assumed of the rest, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.command_lines import Given, Line, lacks, main, read, refusal
from tests.unit.modules import PROJECT

CERTIFICATES, CUDA, ENVIRONMENTS = (
    "hal_cluster.certificates.cli",
    "hal_cluster.rules.cuda.cli",
    "hal_cluster.environments.cli",
)
INVENTORY, PACKAGES, PROVISION = "hal_cluster.inventory.cli", "hal_cluster.packages.cli", "hal_cluster.provision.cli"
SECRETS, AUDIT = "hal_cluster.secrets.cli", "hal_cluster.audit.cli"

# What several commands have.
REVOKE: Given = {"user": "", "serial": "", "key": "", "node": "", "address": "", "reason": "lost"}
FOLDER: Given = {"folder": Path("inventory/hal/environments"), "places": []}
SITE: Given = {"script_list": False, "host": None}
BMC: Given = {"user": None, "ca_file": None, "pin": []}
MIRROR: Given = {"sources": None, "lock": None, "places": []}
SOURCES: Given = {"sources": [], "as_json": False}


def certificates(words: str, **gives: object) -> Line:
    words = f"--authority=/ca COMMAND:{words}"
    return Line(CERTIFICATES, words, {"authority": Path("/ca"), "command": words.split(":")[1].split()[0], **gives})


LINES = [
    certificates("issue user:alice --key=a.pub", user="alice", key=Path("a.pub"), principals="", days=30),
    certificates("list"),
    certificates("revoke --reason=lost", **REVOKE),
    certificates("build", taken_back=False),
    certificates("servers"),
    certificates(
        "pin node:hal05 --address=10.64.0.105 --expected=- --into=known",
        node="hal05", address="10.64.0.105", expected="-", into=Path("known"),
    ),
    Line(CUDA, "COMMAND:table", {"command": "table"}),
    Line(CUDA, "COMMAND:check", {
        "command": "check", "driver": None, "toolkit": [], "arch": "ppc64le", "distribution": "rhel7", "kernel": None,
        "gpu": [], "compat": [],
    }),
    Line(ENVIRONMENTS, "COMMAND:lock NAME:wmlce", {
        "command": "lock", **FOLDER, "names": ["wmlce"], "keep": False, "platform": None, "to": None,
    }),
    Line(ENVIRONMENTS, "COMMAND:check", {"command": "check", **FOLDER, "names": [], "fetch": False}),
    Line(ENVIRONMENTS, "COMMAND:diff NEW:a.yml NEW:b.yml", {
        "command": "diff", "old": Path("a.yml"), "new": Path("b.yml"),
    }),
    Line(ENVIRONMENTS, "COMMAND:wheel --arch=ppc64le --to=wheels", {
        "command": "wheel", "arch": "ppc64le", "to": Path("wheels"),
    }),
    Line(INVENTORY, "", {**SITE, "command": None}),
    Line(INVENTORY, "show", {**SITE, "command": "show", "words": []}),
    Line(INVENTORY, "list", {**SITE, "command": "list", "expression": "all"}),
    Line(INVENTORY, "graph", {**SITE, "command": "graph", "group": None}),
    Line(INVENTORY, "nodes", {**SITE, "command": "nodes", "expression": "all", "expand": False}),
    Line(INVENTORY, "nodes gpu", {**SITE, "command": "nodes", "expression": "gpu", "expand": False}),
    Line(INVENTORY, "names", {**SITE, "command": "names"}),
    Line(INVENTORY, "validate", {**SITE, "command": "validate", "files": [], "placeholders": False, "model": False}),
    Line(INVENTORY, "capture", {
        **SITE, "command": "capture", "files": [], "script": False, "node": None, "bmc": None, **BMC,
    }),
    Line(INVENTORY, "adopt NODE:hal05", {
        **SITE, "command": "adopt", "node": "hal05", "write": False, "disks": [], "macs": [], "bmc_file": None, **BMC,
    }),
    Line(INVENTORY, "schema", {**SITE, "command": "schema"}),
    Line(INVENTORY, "completion shell:zsh", {**SITE, "command": "completion", "shell": "zsh"}),
    Line(PACKAGES, "COMMAND:declared", {"command": "declared", "sources": None, "as_json": False}),
    Line(PACKAGES, "COMMAND:lock", {"command": "lock", **MIRROR, "given": [], "given_file": None}),
    Line(PACKAGES, "COMMAND:verify", {"command": "verify", **MIRROR, "fetch": False, "files": None}),
    Line(PACKAGES, "COMMAND:schema", {"command": "schema"}),
    Line(PROVISION, "COMMAND:key key:keys/image", {"command": "key", "key": Path("keys/image")}),
    Line(
        PROVISION,
        "COMMAND:seal root:r.tar --into=d --key=k --name=n --version=7 --arch=ppc64le --kernel=4.18 --packages=p",
        {"command": "seal", "root": Path("r.tar"), "into": Path("d"), "key": Path("k"), "name": "n", "version": "7",
         "arch": "ppc64le", "kernel": "4.18", "packages": Path("p")},
    ),
    Line(PROVISION, "COMMAND:sign --into=d --key=k", {"command": "sign", "into": Path("d"), "key": Path("k")}),
    Line(PROVISION, "COMMAND:check folder:image --key=k.pem", {
        "command": "check", "folder": Path("image"), "key": Path("k.pem"), "arch": None, "kernel": None,
    }),
    Line(PROVISION, "COMMAND:petitboot file:-", {"command": "petitboot", "file": "-"}),
    Line(PROVISION, "COMMAND:rescue node:hal05 --inventory=i.yml --tree=http://t --server=http://s", {
        "command": "rescue", "node": "hal05", "inventory": Path("i.yml"), "tree": "http://t", "server": "http://s",
        "network": "management", "console": "hvc0", "hours": 1,
    }),
    Line(SECRETS, "--site=hal", {"root": PROJECT, "site": "hal", "vault_password_file": None, "rotate": ""}),
    Line(AUDIT, "", {"command": None}),
    Line(AUDIT, "run", {**SOURCES, "command": "run", "limit": "", "roles": [], "forks": 0, "deep": False, "rest": []}),
    Line(AUDIT, "show NODE:hal05", {**SOURCES, "command": "show", "node": "hal05", "roles": []}),
    Line(AUDIT, "adopt", {**SOURCES, "command": "adopt", "limit": "", "accept": False, "rest": []}),
    Line(AUDIT, "accept PATH:/etc/a --reason=r --until=2027-01-31", {
        **SOURCES, "command": "accept", "paths": ["/etc/a"], "reason": "r", "until": "2027-01-31", "limit": "",
    }),
    Line(AUDIT, "timer", {**SOURCES, "command": "timer", "at": "03:30", "remove": False, "rest": []}),
    Line(AUDIT, "completion shell:bash", {**SOURCES, "command": "completion", "shell": "bash"}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_password_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)


def status(program: str) -> int:
    """Of a refusal. To hal-audit 2 is drift."""
    return 1 if program == AUDIT else 2


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_what_is_required_suffices_and_the_rest_has_its_default(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(line.program, line.argv, monkeypatch) == line.gives


@pytest.mark.parametrize(("program", "name", "argv"), lacks(LINES))
def test_what_is_left_out_is_named(
    program: str, name: str, argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert name in refusal(program, argv, monkeypatch, capsys, status(program)).replace(",", "").split()


@pytest.mark.parametrize(
    ("program", "argv", "gives"),
    [
        (CERTIFICATES, "--authority d issue alice --key k --days 7 --principals a,b", {"days": 7, "principals": "a,b"}),
        (CERTIFICATES, "--authority d revoke --reason r --user alice", {"user": "alice", "serial": ""}),
        (CERTIFICATES, "--authority d revoke --reason r --serial 7", {"serial": "7"}),
        (CERTIFICATES, "--authority d revoke --reason r --key k.pub", {"key": "k.pub"}),
        (CERTIFICATES, "--authority d revoke --reason r --node n --address a", {"node": "n", "address": "a"}),
        (CERTIFICATES, "--authority d build --taken-back", {"taken_back": True}),
        (CUDA, "check --driver 440.33.01 --kernel 4.18 --arch x86_64 --distribution rhel8",
         {"driver": "440.33.01", "kernel": "4.18", "arch": "x86_64", "distribution": "rhel8"}),
        (CUDA, "check --toolkit 10.1 --toolkit 10.2 --gpu V100 --gpu A100 --compat 11.0 --compat 11.1",
         {"toolkit": ["10.1", "10.2"], "gpu": ["V100", "A100"], "compat": ["11.0", "11.1"]}),
        (ENVIRONMENTS, "lock a b --keep --platform linux-64 --to out --folder in",
         {"names": ["a", "b"], "keep": True, "platform": "linux-64", "to": Path("out"), "folder": Path("in")}),
        (ENVIRONMENTS, "check a b --fetch --from ibm=file:///a=b --from main=http://c",
         {"names": ["a", "b"], "fetch": True, "places": [("ibm", "file:///a=b"), ("main", "http://c")]}),
        (INVENTORY, "--list", {"script_list": True}),
        (INVENTORY, "--host hal05", {"host": "hal05", "script_list": False}),
        (INVENTORY, "--json -i a -i b names", {"as_json": True, "sources": ["a", "b"]}),
        (INVENTORY, "names --json --inventory a -i b", {"as_json": True, "sources": ["a", "b"]}),
        (INVENTORY, "show node hal05", {"words": ["node", "hal05"]}),
        (INVENTORY, "list gpu", {"expression": "gpu"}),
        (INVENTORY, "graph gpu", {"group": "gpu"}),
        (INVENTORY, "nodes all --expand", {"expand": True}),
        (INVENTORY, "validate a b --placeholders", {"files": ["a", "b"], "placeholders": True}),
        (INVENTORY, "capture a --node hal05 --script", {"files": ["a"], "node": "hal05", "script": True}),
        (INVENTORY, "capture --bmc gpu --user root --ca-file c --pin a=1 --pin b=2",
         {"bmc": "gpu", "user": "root", "ca_file": "c", "pin": ["a=1", "b=2"]}),
        (INVENTORY, "adopt hal05 --write --disk 1 --disk a=2 --mac m=3 --mac n=4 --bmc-file b --pin hal05=1",
         {"write": True, "disks": ["1", "a=2"], "macs": ["m=3", "n=4"], "bmc_file": "b", "pin": ["hal05=1"]}),
        (PACKAGES, "declared --json -i a --inventory b", {"as_json": True, "sources": ["a", "b"]}),
        (PACKAGES, "lock -i a --lock l --from os=/a=b --from os/ppc64le=c --given g --given h --given-file f",
         {"sources": ["a"], "lock": Path("l"), "places": [("os", "/a=b"), ("os/ppc64le", "c")],
          "given": ["g", "h"], "given_file": Path("f")}),
        (PACKAGES, "verify --fetch --files mirror", {"fetch": True, "files": Path("mirror")}),
        (PROVISION, "check image --key k --arch x86_64 --kernel 4.18", {"arch": "x86_64", "kernel": "4.18"}),
        (PROVISION, "rescue n --inventory i --tree t --server s --network ipoib --console tty0 --hours 0.5",
         {"network": "ipoib", "console": "tty0", "hours": 0.5}),
        (SECRETS, "--site hal --root /p --vault-password-file f --rotate vault_a",
         {"root": Path("/p"), "vault_password_file": Path("f"), "rotate": "vault_a"}),
        (AUDIT, "run -i a --inventory b --json --limit gpu --role time --role ssh --forks 3 -- -e x=1",
         {"sources": ["a", "b"], "as_json": True, "limit": "gpu", "roles": ["time", "ssh"], "forks": 3,
          "rest": ["-e", "x=1"]}),
        (AUDIT, "show hal05 --role time --role ssh", {"node": "hal05", "roles": ["time", "ssh"]}),
        (AUDIT, "run --deep", {"deep": True}),
        (AUDIT, "accept /a /b --reason r --until 2027-01-31 --limit gpu", {"paths": ["/a", "/b"], "limit": "gpu"}),
        (AUDIT, "timer --at 04:00 -- -e x=1", {"at": "04:00", "rest": ["-e", "x=1"]}),
        (AUDIT, "timer --remove", {"remove": True}),
        (AUDIT, "adopt --limit gpu --accept -- --become", {"limit": "gpu", "accept": True, "rest": ["--become"]}),
    ],
)  # fmt: skip
def test_what_is_given_counts(program: str, argv: str, gives: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(program, argv.split(), monkeypatch)
    assert {name: found[name] for name in gives} == gives


@pytest.mark.parametrize(
    ("program", "argv", "name"),
    [
        (CERTIFICATES, "--authority d issue alice --key k --days many", "--days"),
        (CERTIFICATES, "--authority d erase", "COMMAND"),
        (CUDA, "erase", "COMMAND"),
        (ENVIRONMENTS, "erase", "COMMAND"),
        (ENVIRONMENTS, "lock a --platform linux-s390x", "--platform"),
        (ENVIRONMENTS, "lock a --from ibm", "--from"),
        (ENVIRONMENTS, "check --from =http://a", "--from"),
        (ENVIRONMENTS, "check --from ibm=", "--from"),
        (ENVIRONMENTS, "wheel --to d --arch s390x", "--arch"),
        (INVENTORY, "erase", "COMMAND"),
        (INVENTORY, "completion fish", "shell"),
        (PACKAGES, "erase", "COMMAND"),
        (PACKAGES, "lock --from os", "--from"),
        (PACKAGES, "verify --from =http://a", "--from"),
        (PACKAGES, "verify --from os=", "--from"),
        (PROVISION, "erase", "COMMAND"),
        (PROVISION, "seal r --into d --key k --name n --version 7 --arch s390x --kernel 4 --packages p", "--arch"),
        (PROVISION, "check image --key k --arch s390x", "--arch"),
        (PROVISION, "rescue n --inventory i --tree t --server s --hours many", "--hours"),
        (AUDIT, "erase", "COMMAND"),
        (AUDIT, "run --forks many", "--forks"),
        (AUDIT, "completion fish", "shell"),
        (AUDIT, "show hal05 hal06", "unrecognized"),
        (AUDIT, "completion bash zsh", "unrecognized"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    program: str, argv: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(program, argv.split(), monkeypatch, capsys, status(program))
    assert name in said.replace(":", "").replace("/", " ").split()


@pytest.mark.parametrize(("program", "form"), [(ENVIRONMENTS, "CHANNEL=PLACE"), (PACKAGES, "REPOSITORY[/ARCH]=PLACE")])
def test_a_place_that_cannot_be_read_shows_how_it_is_written(
    program: str, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(program, ["verify" if program == PACKAGES else "check", "--from", "os"], monkeypatch, capsys)
    assert said.endswith(f"'os' is not {form}")


def test_a_channel_in_a_folder_has_the_folder_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = read(ENVIRONMENTS, ["check", "--from", "ibm=mirror/ibm"], monkeypatch)
    assert found["places"] == [("ibm", (tmp_path / "mirror/ibm").as_uri())]


@pytest.mark.parametrize(("named", "file"), [("vault password", Path("vault password")), ("", None)])
def test_the_vaults_password_may_come_from_the_environment(
    named: str, file: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", named)
    assert read(SECRETS, ["--site", "hal"], monkeypatch)["vault_password_file"] == file


@pytest.mark.parametrize(("program", "ends"), [(INVENTORY, 2), (AUDIT, 1)])
def test_without_a_command_the_help_is_shown_and_it_is_an_error(
    program: str, ends: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(program, [], monkeypatch) == ends
    said = capsys.readouterr()
    assert said.out.startswith("usage: ")
    assert "completion" in said.out
    assert said.err == ""


def test_a_commands_help_begins_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(INVENTORY, ["nodes", "--help"], monkeypatch)
    assert ended.value.code == 0
    does = "Print the nodes that an expression selects, as a range."
    assert does in " ".join(capsys.readouterr().out.split())
