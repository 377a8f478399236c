"""One rollout a node at a time: who holds which node, whether that rollout lives, and what a killed one has left."""
