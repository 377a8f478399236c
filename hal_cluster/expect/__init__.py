"""Expectations at the controller: read, check and template roles/*/expect.yml, and word the results.

The node's half is hal_node/expect/; plugins/action/hal_expect.py joins the two.
"""
