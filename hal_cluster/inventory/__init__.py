"""The program ``hal-inventory``: what a site is made of, and what its machines say about themselves."""
