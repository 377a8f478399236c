"""Expectations at the controller: read, check and template roles/*/expect.yml, and word the results.

The node's half is plugins/module_utils/hal_expect_*.py; plugins/action/hal_expect.py joins the two.
"""
