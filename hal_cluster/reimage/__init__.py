"""The step engine of a reimage: from a node that serves jobs to one that is freshly installed and serves jobs again."""
