"""The cluster, as the controller works on it: one part a folder; what roles decide is in `rules`."""
