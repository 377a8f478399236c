"""Which CUDA toolkits, drivers, kernels, architectures and GPUs go together, and why not.

Functions import the table when they need it: each of Ansible's workers loads the filters anew, and the checks of the
table (pydantic) take longer than all else.
"""

from __future__ import annotations
