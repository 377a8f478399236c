"""The role's own tasks refuse what hal_cluster.rules.firewall finds, on a node that is a folder."""

from __future__ import annotations

from pathlib import Path

from tests.unit.looking import look, words

FRESH = {
    "systemctl": '[ "$2" = --quiet ] || echo inactive; exit 3',
    "iptables-save": ":",
    "ip6tables-save": ":",
    "nft": ":",
    "ss": "echo Netid State; echo 'tcp LISTEN 0 128 *:22 *:* users:((\"sshd\",pid=7,fd=6))'",
    "pgrep": "echo 0; exit 1",
}


def test_what_others_set_up_is_refused_with_the_ways_on(tmp_path: Path) -> None:
    paths = {"/var/lib/hal/firewall": f"{tmp_path}/state", "/etc/firewalld": f"{tmp_path}/firewalld"}
    run = look(tmp_path, "firewall", paths, FRESH)
    assert run.returncode == 0, words(run)
    nat = {"iptables-save": "printf '%s\\n' '*nat' '-A POSTROUTING -j MASQUERADE' COMMIT"}
    run = look(tmp_path, "firewall", paths, {**FRESH, **nat})
    assert run.returncode != 0
    assert (
        "hal05: the firewall would take away or close what nobody declared: ipv4 nat -A POSTROUTING -j MASQUERADE."
        in (words(run))
    )
    assert "-e firewall_replace_ok=true" in words(run)
    assert look(tmp_path, "firewall", paths, {**FRESH, **nat}, firewall_replace_ok=True).returncode == 0
    (tmp_path / "firewalld/zones").mkdir(parents=True)
    (tmp_path / "firewalld/zones/public.xml").write_text("<zone>\n<short>Public")
    run = look(tmp_path, "firewall", paths, FRESH)
    assert run.returncode == 0, words(run)
    assert "hal05: /etc/firewalld/zones/public.xml cannot be read (no element found)" in words(run)
    run = look(tmp_path, "firewall", paths, {**FRESH, "iptables-save": "echo broken >&2; exit 1"})
    assert run.returncode != 0
