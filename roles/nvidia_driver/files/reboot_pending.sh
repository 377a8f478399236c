#!/bin/sh
# Prints one line for each thing about the GPU driver that a reboot makes effective. $1 is the declared version, $2 "yes" when udev brought memory
# on-line until now, $3 "yes" when the options of the loaded module are compared; further arguments are those: EnableStreamMemOPs=1. Read-only.
version=$1 memory=$2 compare=$3
shift 3

[ ! -e /sys/module/nouveau ] || echo "nouveau is loaded; nvidia cannot be"

said=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null)
status=$?
case $status in
  0 | 15)
    loaded=$(echo "$said" | grep -m 1 '^[0-9]')
    [ "$loaded" = "$version" ] || echo "driver ${loaded:-of an unknown version} is loaded, not $version"
    ;;
  18) echo "another driver than the installed $version is loaded" ;;
esac

params=/proc/driver/nvidia/params
if [ "$compare" = yes ] && [ -e "$params" ]; then
  for option; do
    value=$(sed -n "s/^${option%%=*}: //p" "$params" | tr -d '"')
    [ "${value%;}" = "${option#*=}" ] || echo "the loaded module has ${option%%=*}=$value, not ${option#*=}"
  done
fi

# The GPUs' memory appears when the driver is loaded.
case $memory.$status in
  yes.0 | yes.15 | yes.18) echo "udev has brought memory of GPUs on-line" ;;
esac
