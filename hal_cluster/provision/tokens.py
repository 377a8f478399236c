"""One-time tokens: what a node that is being installed shows to begin, to get its first secrets, and to call home.

Made here, where the order is made; only its digest goes to the server. It is checked on the machine that serves the
node: ``roles/provision_server/files/provision_store.py`` (CentOS 7's Pythons), one node, one address, one use of each.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

from hal_cluster.provision.errors import ProvisionError

MOST_SECONDS = 24 * 3600
"""What the server takes at most: an installation of an AC922 with an hour of memory tests fits many times."""


@dataclass(frozen=True)
class Token:
    """A token. Its words are in no representation, so in no traceback or log; ``expires`` in seconds since 1970."""

    words: str = field(repr=False)
    expires: float

    @property
    def sha256(self) -> str:
        """The digest, which opens nothing."""
        return hashlib.sha256(self.words.encode()).hexdigest()


def issue(now: float, seconds: float) -> Token:
    """Return a new token that is good for some seconds; ProvisionError for more than a day, or none."""
    if not 0 < seconds <= MOST_SECONDS:
        raise ProvisionError(f"a token for {seconds:g} s; more than 0 and at most {MOST_SECONDS} s")
    # 256 bits: nobody guesses it, so that wrong guesses need not be counted. Letters that no shell and no URL changes.
    return Token(secrets.token_urlsafe(32), now + seconds)
