"""What the roles manage on each node: recorded while they converge, compared with the node by the audit."""
