"""The secrets that roles take from the vault: what there is to make, making it, and refusing what everybody knows."""
