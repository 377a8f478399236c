"""Pure functions from a site to what programs need: the inventory, and slices for ``lookup('hal', NAME)``."""
