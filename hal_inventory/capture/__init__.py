"""From what a real machine says about itself to a proposal for cluster.yml: read, parse, compare, propose as a diff."""
