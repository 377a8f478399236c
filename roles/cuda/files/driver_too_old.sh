#!/bin/sh
# Prints a line when the loaded driver is older than $1. Read-only.
# nvidia-smi prints one row a GPU; while no driver answers, a sentence.
loaded=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | grep -m 1 '^[0-9]')
[ -n "$loaded" ] || { echo "nvidia-smi shows no driver" >&2; exit 1; }
oldest=$(printf '%s\n%s\n' "$1" "$loaded" | sort -V | head -n 1)
[ "$oldest" = "$1" ] || echo "driver $loaded is loaded, $1 or later is needed"
