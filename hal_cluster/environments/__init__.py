"""Environments of Python and its libraries, from conda channels: solved at the controller, locked, checked."""
