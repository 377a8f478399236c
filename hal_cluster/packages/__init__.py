"""The packages of a site: what its roles declare, the lock file that pins them, and the checks between the two."""
