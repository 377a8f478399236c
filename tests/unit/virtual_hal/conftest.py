"""Make the package of the virtual nodes importable, the stand-in of Spectrum Scale, and what plays parts of a node."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAB = HERE.parents[2] / "molecule/virtual_hal"
SCALE = LAB / "packages/files/gpfs.base/usr/libexec/virtual-scale"
sys.path[:0] = [str(LAB), str(SCALE), str(HERE / "played")]
