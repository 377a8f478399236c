"""One rollout at a time on a node: who holds which node, whether that rollout lives, what a killed one has left."""
