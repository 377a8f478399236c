"""Which CUDA toolkits, drivers, kernels, architectures and GPUs go together, and why not."""

from __future__ import annotations
