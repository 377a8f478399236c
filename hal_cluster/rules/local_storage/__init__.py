"""The drives of a node: RAID sets as Linux's md has them, the file systems on them, and what scratch is."""
