"""Interfaces of a node as files of EL7's network scripts."""

from __future__ import annotations
