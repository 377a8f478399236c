#!/bin/sh
# Prints a line when another driver than version $1 is loaded and processes use its GPUs: its libraries may not be replaced under them. Read-only.
loaded=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | grep -m 1 '^[0-9]')
[ -n "$loaded" ] && [ "$loaded" != "$1" ] || exit 0
uses=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -c '^[0-9]')
[ "$uses" -eq 0 ] || echo "driver $loaded is used by $uses processes: $1 was not installed"
