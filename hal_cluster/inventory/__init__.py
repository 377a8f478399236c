"""The program ``hal-inventory``: what a site consists of, and what its machines say about themselves."""
