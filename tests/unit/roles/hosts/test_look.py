"""The role's own tasks refuse what the filters find, on a node that is a folder."""

from __future__ import annotations

from pathlib import Path

from tests.unit.looking import look, words


def test_lines_of_others_are_refused_with_the_ways_on(tmp_path: Path) -> None:
    paths = {"/etc/hosts": f"{tmp_path}/hosts", "/var/lib/hal/hosts": f"{tmp_path}/record"}
    (tmp_path / "hosts").write_text("127.0.0.1 localhost hal05\n192.0.2.77 printer\n10.99.0.1 hal02\n")
    run = look(tmp_path, "hosts", paths, {})
    assert run.returncode != 0
    assert (
        "hal05: /etc/hosts has 2 lines that nobody declared: 192.0.2.77 printer; 10.99.0.1 hal02. To keep what the"
        " model does not have, declare hosts_extra: [{address: 192.0.2.77, names: [printer]}]. The others go with -e"
        " hosts_withdraw_ok=true."
    ) in words(run).replace(str(tmp_path), "/etc")
    assert look(tmp_path, "hosts", paths, {}, hosts_withdraw_ok=True).returncode == 0
    (tmp_path / "record").mkdir()
    (tmp_path / "record/hosts").write_text((tmp_path / "hosts").read_text())
    assert look(tmp_path, "hosts", paths, {}).returncode == 0
    (tmp_path / "hosts").unlink()
    assert look(tmp_path, "hosts", paths, {}).returncode == 0
    (tmp_path / "hosts").mkdir()
    assert look(tmp_path, "hosts", paths, {}).returncode != 0
