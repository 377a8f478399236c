"""`molecule/virtual_hal/clean`, with a program that plays podman: what is removed, and in which order."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

CLEAN = Path(__file__).resolve().parents[3] / "molecule/virtual_hal/clean"
# Says what it was asked, and whether the state of BMCs and the cache were still there.
PODMAN = """#!/bin/sh
there=
[ -e "$CACHE/bmc/mini" ] && there="$there state"
[ -e "$CACHE/packages" ] && there="$there cache"
echo "$1 $2$there" >>"$CACHE.asked"
case "$*" in
*hal.virtual=*) cat "$CACHE.others-nodes" 2>/dev/null || true;;
"images --quiet"*) echo image;;
container*label=hal.tree=*) echo one;;
container*) [ -e "$CACHE.removed" ] || echo one; cat "$CACHE.others-$1" 2>/dev/null || true;;
"rm --force"*) touch "$CACHE.removed"; echo "$*" >"$CACHE.removed";;
"volume ls"* | "network ls"*)
  case "$*" in *hal.tree=*) ;; *) cat "$CACHE.others-$1" 2>/dev/null || true;; esac;;
esac
"""


def clean(folder: Path, *words: str, old: str = "", new: str = "") -> subprocess.CompletedProcess[str]:
    """Run a copy, whose podman only plays it, from another folder than its own; ``new`` takes the place of ``old``."""
    for name in ("virtual_hal", "programs"):
        (folder / name).mkdir()
    text = CLEAN.read_text()
    assert old in text
    programs = {
        "virtual_hal/clean": text.replace(old, new) if old else text,
        "virtual_hal/podman": PODMAN,
        "programs/podman": PODMAN,
        "programs/sudo": "#!/bin/sh\nexit 1\n",
    }
    for name, content in programs.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    path, cache = f"{folder}/programs:{os.environ['PATH']}", str(folder / "cache")
    return subprocess.run(
        [str(folder / "virtual_hal/clean"), *words], cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": path, "HOME": str(folder), "HAL_CACHE_DIR": "cache", "CACHE": cache},
    )  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """What an instance with BMCs leaves."""
    made = tmp_path / "cache"
    (made / "bmc/mini").mkdir(parents=True)
    (made / "bmc/mini/serving").write_text("4711\n")
    (made / "packages").mkdir()
    return made


def asked(cache: Path) -> list[str]:
    """What podman was asked."""
    return Path(f"{cache}.asked").read_text().splitlines()


@pytest.mark.root  # whose files they are
def test_what_BMCs_remember_goes_after_their_container(tmp_path: Path, cache: Path) -> None:
    (tmp_path.parent / ".state").mkdir()
    (tmp_path.parent / ".state/env").touch()  # what make shell opens
    done = clean(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path.parent / ".state/env").exists()
    assert f"removed {cache}/bmc/mini" in done.stdout.splitlines()
    assert not (cache / "bmc/mini").exists()
    assert (cache / "packages").exists()
    assert "rm --force state cache" in asked(cache)
    assert asked(cache)[-1] == "--cleanup  cache"


@pytest.mark.root  # whose files they are
def test_caches_go_last(tmp_path: Path, cache: Path) -> None:
    done = clean(tmp_path, "--caches")
    assert (done.returncode, done.stderr) == (0, "")
    assert not cache.exists()
    assert [line for line in asked(cache) if line.startswith(("rm ", "rmi "))] == [
        "rm --force state cache",
        "rmi --force cache",
    ]


def test_without_rights_the_rest_is_removed(tmp_path: Path, cache: Path) -> None:
    """Another account than root's, and a `sudo` that refuses."""
    done = clean(tmp_path, old="$EUID == 0", new="$EUID == 4711")
    assert done.returncode == 0
    assert done.stderr == f"{cache}/bmc/mini: cannot be removed; it is for root\n"
    assert asked(cache)[-1] == "--cleanup  state cache"


@pytest.mark.root  # whose files they are
def test_state_of_BMCs_that_are_served_stays(tmp_path: Path, cache: Path) -> None:
    with (cache / "bmc/mini/serving").open() as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        done = clean(tmp_path, old="--timeout 120", new="--timeout 0")
    assert done.stderr == f"{cache}/bmc/mini: is served by process 4711 still; left as it is\n"
    assert (cache / "bmc/mini/serving").exists()


@pytest.mark.root  # whose files they are
@pytest.mark.parametrize("kind", ["container", "volume", "network"])
def test_what_other_checkouts_made_stays_with_what_they_use(tmp_path: Path, cache: Path, kind: str) -> None:
    Path(f"{cache}.others-{kind}").write_text("another\nanother\n")
    done = clean(tmp_path, "--caches")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [
        "left 2 containers, volumes and networks of other checkouts (clean --all removes them, too)",
        f"removed {cache}/bmc/mini",
        f"left images and {cache}: other checkouts use them",
    ]
    assert (cache / "packages").exists()
    assert not [line for line in asked(cache) if line.startswith(("rmi", "--cleanup"))]


@pytest.mark.root  # whose files they are
def test_BMCs_of_nodes_of_another_checkout_stay(tmp_path: Path, cache: Path) -> None:
    for kind in ("container", "nodes"):
        Path(f"{cache}.others-{kind}").write_text("another\n")
    done = clean(tmp_path)
    assert f"{cache}/bmc/mini: is of nodes of another checkout; left as it is" in done.stdout.splitlines()
    assert (cache / "bmc/mini/serving").exists()


@pytest.mark.root  # whose files they are
@pytest.mark.parametrize(("words", "removed"), [([], "one"), (["--all"], "another one")])
def test_containers_of_others_go_when_all_is_asked_for(
    tmp_path: Path, cache: Path, words: list[str], removed: str
) -> None:
    Path(f"{cache}.others-container").write_text("another\n")
    clean(tmp_path, *words)
    assert Path(f"{cache}.removed").read_text() == f"rm --force --volumes --time 0 {removed}\n"
