"""playbooks/bmc.yml as administrators call it, on emulated BMCs, and what playbooks/validate.yml says beforehand."""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path

from tests.unit.hal_cluster.bmc.emulated import NEW_SECRET, SECRET, Emulated
from tests.unit.hal_cluster.bmc.site import MODEL, Site, recap, said


def pin(bmc: Emulated) -> str:
    """Return the fingerprint of what a BMC shows."""
    shown = ssl.get_server_certificate((bmc.target.address, bmc.target.https_port))
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest()


def test_a_bmc_as_it_came_gets_what_is_declared(site: Site, tmp_path: Path) -> None:
    delivered = {"certificate": None, "key": None, "password": "0penBmc"}
    site.serve("work1", "work2", work1=delivered, work2=delivered)
    one = site.bmcs["work1"]
    with one.machine.kept.change() as state:
        state.users["root"] = state.users["root"].model_copy(update={"must_change": True})
    site.policy(
        bmc_fingerprints={"work1": f"sha256:{pin(one)}"}, bmc_certificate_days=365, bmc_ntp_servers=["10.99.0.11"]
    )
    done = site.play("bmc.yml", "-e", "bmc_nodes=work[1-2]")
    text = said(done)
    assert f"its certificate is signed only by itself; it shows sha256:{pin(site.bmcs['work2'])}" in text
    assert "User or password is wrong" in text
    assert "No former password is given: put bmc_former_password" in text
    (tmp_path / "former.yml").write_text("bmc_former_password: 0penBmc\n")
    before = one.machine.kept.read()
    checked = site.play("bmc.yml", "-e", "bmc_nodes=work1", "-e", f"@{tmp_path}/former.yml", "--check")
    text = said(checked)
    assert checked.returncode == 0, text
    assert (
        "The BMC of work1 lets the former password in and would get the one of the site. Clock, certificate and report"
        " come after that, and what would be changed there is not known before."
    ) in text
    assert one.machine.kept.read() == before
    done = site.play("bmc.yml", "-e", "bmc_nodes=work1", "-e", f"@{tmp_path}/former.yml")
    text = said(done)
    assert done.returncode == 0, text
    assert "- 'firmware: BMC image ibm-v2.3-476-g2d622cb-r33-0-gcb6e3a8 (work1)'" in text
    assert "- 'one-time boot: network, disk, setup (work1)'" in text
    assert "- 'clock: asks 10.99.0.11 (work1)'" in text
    assert one.machine.users()["root"].password == SECRET
    site.policy(bmc_fingerprints={})
    again = site.play("bmc.yml", "-e", "bmc_nodes=work1")
    assert again.returncode == 0, said(again)
    assert "changed=0" in said(again)


def test_a_rotated_password_reaches_the_bmcs_and_what_is_not_declared_is_not_touched(
    site: Site, tmp_path: Path
) -> None:
    site.serve("work1", "work2", work2={"password": NEW_SECRET})
    site.policy(vault_bmc_password=NEW_SECRET)
    (tmp_path / "former.yml").write_text(f"bmc_former_password: {SECRET}\n")
    before = {name: bmc.machine.kept.read() for name, bmc in site.bmcs.items()}
    certificates = {name: pin(bmc) for name, bmc in site.bmcs.items()}
    done = site.play("bmc.yml", "-e", "bmc_nodes=work[1-2]", "-e", f"@{tmp_path}/former.yml")
    assert done.returncode == 0, said(done)
    assert {name: changed for name, (changed, _) in recap(done).items()} == {"work1": 1, "work2": 0}
    assert site.bmcs["work1"].machine.users()["root"].password == NEW_SECRET
    before["work1"].users["root"].password = NEW_SECRET
    assert {name: bmc.machine.kept.read() for name, bmc in site.bmcs.items()} == before
    assert {name: pin(bmc) for name, bmc in site.bmcs.items()} == certificates


def test_what_came_to_nothing_is_not_taken_for_unsupported(site: Site) -> None:
    """The tasks end without a result, as those do whose module crashed."""
    site.serve("work1", "work2")
    site.policy(
        bmc_ntp_servers="{{ {'first': 1} if inventory_hostname == 'work1' else [] }}",
        bmc_certificate_days="{{ 1.5 if inventory_hostname == 'work2' else 0 }}",
    )
    done = site.play("bmc.yml", "-e", "bmc_nodes=work[1-2]")
    assert "Show it" not in said(done)
    assert recap(done) == {"work1": (0, 1), "work2": (0, 1)}, "changed and failed tasks"


# --- validate.yml


def validated(site: Site, *there: str) -> tuple[bool, str]:
    """Return whether a site is let through that has these in its folder of authorities, and what was said."""
    folder = site.folder / "state" / "ca"
    folder.unlink(missing_ok=True)
    folder.mkdir()
    for name in there:
        (folder / name).touch(0o600)
    done = site.play("validate.yml")
    return done.returncode == 0, said(done)


def test_a_site_of_before_makes_its_authority_for_servers(site: Site) -> None:
    ok, text = validated(site, "host_ca")
    ca = site.folder / "state" / "ca"
    assert not ok
    assert f"{ca}/tls_ca, {ca}/tls_ca.pem are missing" in text
    assert "Run ansible-playbook playbooks/authorities.yml once: it makes them, and keeps all that is there." in text
    assert "For a new site" not in text


def test_half_an_authority_is_restored(site: Site) -> None:
    ok, text = validated(site, "host_ca", "tls_ca")
    assert not ok
    assert f"{site.folder}/state/ca/tls_ca.pem is missing" in text
    assert f"Restore it from the backup of {site.folder}/state: the other half of it is there." in text


def test_a_new_site_makes_them_all(site: Site) -> None:
    ok, text = validated(site)
    assert not ok
    assert f"{site.folder}/state/ca/host_ca is missing. For a new site run playbooks/authorities.yml first" in text


def test_a_site_without_a_server_to_be_known_needs_no_authority_for_them(site: Site) -> None:
    """Neither BMCs nor a provisioning server."""
    site.model(re.sub(r"    bmc: (openbmc|redfish)\n|, bmc: 127[0-9.]+|\n      bmc: 127.*", "", MODEL))
    ok, text = validated(site, "host_ca")
    assert ok, text
