"""Virtual nodes: node image, package repository, create and destroy."""
