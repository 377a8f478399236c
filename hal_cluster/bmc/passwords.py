"""Passwords with which machines leave the factory. All they are good for is to change them.

Sources: OpenBMC's AC922 (0penBmc; github openbmc/docs), Supermicro and its LC92x (ADMIN), iDRAC (calvin; Dell's
guides), XClarity (PASSW0RD), others' in xCAT's documentation; and what hal_cluster.secrets knows of any program.
"""

from __future__ import annotations

from hal_cluster.secrets.known import problems

FACTORY = frozenset(
    {"0penbmc", "admin", "calvin", "passw0rd", "password", "root", "superuser", "changeme", "rootpass", "cmb9.admin"}
)
# Of IPMI 2.0: a password has 20 bytes at most, and pyghmi cuts a longer one without a word.
LONGEST_IPMI = 20


def is_default(password: str) -> bool:
    """Whether a password is one that everybody knows, or none."""
    return not password.strip() or password.strip().lower() in FACTORY


def problem(password: str) -> str:
    """Return why a password may not be set, without the password; "" for a good one."""
    if is_default(password):
        return "is a well-known default, or empty"
    return "".join(problems({"": password}, ())).strip()
