"""Stand-in of the virtual HAL for IBM Spectrum Scale 5.0.4: its commands and formats around a folder of all nodes.

molecule/virtual_hal/scale/README.md says what is taken from where. Nothing here is IBM's.
"""

VERSION = "5.0.4.1"
