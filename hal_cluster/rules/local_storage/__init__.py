"""What is made of the drives of a node: RAID sets as Linux's md has them, and the file systems on them."""
