"""Modulefiles for Lmod: what roles declare, what is wrong with it, and the Lua that comes of it."""

from __future__ import annotations
