#!/bin/sh
# Prints one line for each thing about the GPU driver that a reboot makes effective. $1 is the declared version, $2 the file of udev rules (or
# nothing), $3 "yes" when the options of the loaded module are compared; further arguments are those: EnableStreamMemOPs=1. Read-only.
version=$1 rules=$2 compare=$3
shift 3

[ ! -e /sys/module/nouveau ] || echo "nouveau is loaded; nvidia cannot be"

said=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null)
case $? in
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

# udev brings memory on-line when it appears, which is when the driver is loaded: a later rule comes too late.
if [ -n "$rules" ] && [ -e "$params" ] && [ "$rules" -nt "$params" ]; then
  echo "$rules is younger than the loaded driver"
fi
