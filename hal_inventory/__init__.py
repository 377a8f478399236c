"""The site model: reads a cluster.yml, checks it, and derives the Ansible inventory and all that is cluster-wide.

``load`` reads, ``derive`` computes, ``sources`` finds, ``compiled`` keeps results. Importing the package costs nothing.
"""
