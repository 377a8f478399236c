"""What a node's firewall lets in: openings that roles declare (firewall.yml), as zones of firewalld."""

from __future__ import annotations
