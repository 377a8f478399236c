"""Lock files: solved with strict channel priority, written to be read, refused with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hal_cluster.environments import cli, solve
from hal_cluster.environments.check import check
from hal_cluster.environments.errors import FileError, HalEnvironmentsError
from hal_cluster.environments.lock import difference, digest, dump, load
from tests.unit.hal_cluster.environments.conftest import RELEASE, asked

PROJECT = Path(__file__).resolve().parents[4]
Write = Callable[..., Path]


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def changed(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def test_the_first_channel_that_has_a_package_decides(write_lock: Write) -> None:
    """main has maths 3.0, which is newer; nobody looks at it."""
    found = load(write_lock("maths"))
    assert {one.name: (one.version, one.channel) for one in found.packages.values()} == {
        "maths": ("1.10", "ibm"),
        "places": ("2.0", "ibm"),
        "python": (f"{RELEASE}.0", "ibm"),
    }


def test_a_package_that_only_a_later_channel_could_give_is_no_solution(channels: Path) -> None:
    places = {alias: (channels / alias).as_uri() for alias in ("ibm", "main")}
    with pytest.raises(HalEnvironmentsError, match=r"maths 3\.0 is excluded because due to strict channel priority"):
        solve.lock(asked("maths 3.*"), places)


def test_what_nodes_do_not_have_keeps_a_package_out(channels: Path) -> None:
    places = {alias: (channels / alias).as_uri() for alias in ("ibm", "main")}
    older = solve.lock(asked("maths", virtual={"__glibc": "2.12"}), places)
    assert older.packages["maths"].version == "1.9", "1.10 wants glibc 2.17"


def test_for_power_on_any_machine(tmp_path: Path, channels: Path) -> None:
    """As for HAL, on the controller's x86_64."""
    from testbed import channel

    channel.make(tmp_path / "power", "ppc64le", channels.parent / "recipes", None)
    places = {alias: (tmp_path / "power" / alias).as_uri() for alias in ("ibm", "main")}
    found = solve.lock(asked("maths", "pure", platform="linux-ppc64le"), places)
    assert {one.name: one.subdir for one in found.packages.values()} == {
        "maths": "linux-ppc64le",
        "places": "linux-ppc64le",
        "python": "linux-ppc64le",
        "pure": "noarch",
    }


def test_the_same_channels_give_the_same_bytes_and_they_are_read_back(write_lock: Write) -> None:
    path = write_lock("maths", "pure")
    text = path.read_text()
    assert write_lock("maths", "pure").read_text() == text
    assert dump(load(path), "tools-1") == text
    assert list(load(path).packages) == ["maths", "places", "pure", "python"]
    assert "version: '1.10'" in text, "not the number 1.1"


def test_what_is_locked_stays_where_that_is_wanted(write_lock: Write, channels: Path) -> None:
    places = {alias: (channels / alias).as_uri() for alias in ("ibm", "main")}
    old = load(write_lock("maths 1.9"))
    assert solve.lock(asked("maths"), places, old).packages["maths"].version == "1.9"
    assert solve.lock(asked("maths"), places).packages["maths"].version == "1.10"


def test_a_difference_is_a_line_a_package(write_lock: Write) -> None:
    old, new = load(write_lock("maths 1.9", name="old")), load(write_lock("maths", name="new"))
    build = f"py{RELEASE.replace('.', '')}_0"
    assert list(difference(old, new)) == [f"~ maths 1.9 {build} -> 1.10 {build}", "+ places 2.0 0 (ibm)"]
    assert digest(old) != digest(new)


def test_the_digest_says_what_is_installed_and_nothing_else(write_lock: Write) -> None:
    path = write_lock("maths")
    before = digest(load(path))
    changed(path, "https://main.example/conda", "https://elsewhere.example/conda")
    assert digest(load(path)) == before, "the same packages from another place"
    changed(path, "sha256: ", "sha256: 0")
    text = path.read_text()
    at = text.index("sha256: 0") + len("sha256: ") + 64
    path.write_text(text[:at] + text[at + 1 :])
    assert digest(load(path)) != before


@pytest.mark.parametrize(
    ("old", "new", "where", "words"),
    [
        (
            "    sha256:",
            "    # sha256:",
            "  maths:",
            "maths: no sha256: 64 hex digits, as the channel has them; hal-env",
        ),
        ("    sha256: ", "    sha256: X", "    sha256: X", "maths: sha256 is X"),
        ("version: '1.10'", "version: 1.10", "version: 1.10", "maths: version is the number 1.1; put it in quotes"),
        ("    size:", "    size: -1 #", "    size: -1", "maths: size is -1; write the archive's bytes"),
        ("channel: ibm", "channel: other", "channel: other", "maths: channel other is none of ibm, main"),
        (
            "subdir: linux-64",
            "subdir: linux-32",
            "subdir: linux-32",
            "maths: subdir linux-32 is neither linux-64 nor no",
        ),
        ("file: maths-1.10", "file: maths-1.11", "file: maths-1.11", "maths: file is maths-1.11"),
        ("  places:", "  maths:", "  maths:", "packages.maths is there twice, first in line"),
        ("format: 1", "format: 2", "format: 2", "format is 2, this version reads 1"),
        ("platform: linux-64", "platform: linux", "platform: linux", "platform is 'linux'; write one of"),
        ("specs:", "wishes: 1\nspecs:", "wishes", "wishes: unknown field"),
    ],
)
def test_a_faulty_lock_file_is_refused_with_line_and_advice(
    write_lock: Write, old: str, new: str, where: str, words: str
) -> None:
    path = changed(write_lock("maths"), old, new)
    with pytest.raises(FileError) as error:
        load(path)
    found = [line for line in error.value.findings if words in line]
    assert found, error.value.findings
    number = int(found[0].split(":")[1])
    assert where in path.read_text().splitlines()[number - 1]


def test_dependencies_that_nothing_satisfies_are_named(write_lock: Write) -> None:
    path = write_lock("maths")
    text = path.read_text()
    start, end = text.index("  places:"), text.index("  python:")
    path.write_text(text[:start] + text[end:])
    with pytest.raises(FileError) as error:
        check(path)
    where = line_of(path, "    depends:")
    assert error.value.findings == [f"{path}:{where}: maths: needs places: nothing is locked of that name"]


def test_another_release_than_asked_for_is_named(write_lock: Write) -> None:
    path = changed(write_lock("maths"), "- maths\n", "- maths >=2\n")
    with pytest.raises(FileError, match=r"spec maths >=2: locked is 1.10"):
        check(path)


def test_the_program_locks_checks_and_compares(
    tmp_path: Path, channels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "environments"
    folder.mkdir()
    places = [f"--from={alias}={channels / alias}" for alias in ("ibm", "main")]
    specs = {
        "format": 1, "platform": "linux-64", "virtual": {"__glibc": "2.17"}, "specs": ["maths 1.9"],
        "channels": {"ibm": "https://ibm.example/conda", "main": "https://main.example/conda"},
    }  # fmt: skip
    (folder / "tools-1.yml").write_text(yaml.safe_dump(specs))
    assert cli.main(["lock", "--folder", str(folder), *places, "tools-1"]) == 0
    assert "2 packages" in capsys.readouterr().out
    assert cli.main(["check", "--folder", str(folder), *places]) == 0
    assert "complete" in capsys.readouterr().out

    (folder / "tools-1.yml").write_text(yaml.safe_dump({**specs, "specs": ["maths"]}))
    assert cli.main(["check", "--folder", str(folder)]) == 2
    assert "specs is not that of tools-1.yml: run hal-environments lock tools-1" in capsys.readouterr().err
    old = tmp_path / "old.lock.yml"
    old.write_text((folder / "tools-1.lock.yml").read_text())
    assert cli.main(["lock", "--folder", str(folder), *places, "tools-1"]) == 0
    assert "~ maths 1.9" in capsys.readouterr().out
    assert cli.main(["diff", str(old), str(folder / "tools-1.lock.yml")]) == 0
    assert "+ places 2.0 0 (ibm)" in capsys.readouterr().out

    wrong = changed(folder / "tools-1.lock.yml", "sha256: ", "sha256: 0")
    text = wrong.read_text()
    at = text.index("sha256: 0") + len("sha256: ") + 64
    wrong.write_text(text[:at] + text[at + 1 :])
    assert cli.main(["check", "--folder", str(folder), *places]) == 2
    assert "maths: ibm has sha256 " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"specs": []}, "specs: write a list"),
        ({"channels": {"IBM": "https://x"}}, "channels: IBM is not an alias"),
        ({"channels": {"ibm": "ftp://x"}}, "channels: ibm is ftp://x; write https://"),
        ({"channels": {"ibm": "https://me:secret@x/y"}}, "channels: ibm has a name or password in it"),
        ({"virtual": {"__cuda": 10.2}}, "virtual: __cuda is 10.2; write a text, a number in quotes"),
        ({"virtual": {"cuda": "10.2"}}, "virtual: cuda is not a virtual package"),
        ({"wish": 1}, "wish: unknown field"),
    ],
)
def test_specs_with_faults_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], words: str
) -> None:
    specs = {"format": 1, "platform": "linux-64", "channels": {"ibm": "https://ibm.example"}, "specs": ["maths"]}
    (tmp_path / "tools-1.yml").write_text(yaml.safe_dump({**specs, **change}))
    assert cli.main(["lock", "--folder", str(tmp_path), "tools-1"]) == 2
    assert words in capsys.readouterr().err


def test_a_channel_that_cannot_be_reached_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = {"format": 1, "platform": "linux-64", "channels": {"ibm": "http://127.0.0.1:9/conda"}, "specs": ["maths"]}
    (tmp_path / "tools-1.yml").write_text(yaml.safe_dump(specs))
    assert cli.main(["lock", "--folder", str(tmp_path), "tools-1"]) == 2
    assert "http://127.0.0.1:9/conda" in capsys.readouterr().err


def test_what_hal_asks_for_can_be_read() -> None:
    from hal_cluster.environments import specs

    found = {path.stem: specs.load(path) for path in (PROJECT / "inventory/hal/environments").glob("wmlce-*.yml")}
    assert {name: one.specs for name, one in found.items() if not name.endswith(".lock")} == {
        "wmlce-1.7.0-py3.7": ("python 3.7.*", "powerai 1.7.0.*", "ipykernel", "pip"),
        "wmlce-1.7.0-py3.6": ("python 3.6.*", "powerai 1.7.0.*", "ipykernel", "pip"),
        "wmlce-1.6.1-py2.7": ("python 2.7.*", "powerai 1.6.1.*", "ipykernel", "pip"),
    }
