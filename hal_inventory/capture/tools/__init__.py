"""Parsers of what tools print, one a file: pure functions of text, for the versions that CentOS 7 has."""
