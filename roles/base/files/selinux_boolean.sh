#!/bin/sh
# Prints a boolean of SELinux, $1, as "on, off after a reboot"; "pending reboot" where SELinux is off until then. Read-only.
[ "$(getenforce)" != Disabled ] || { echo "pending reboot"; exit 0; }
live=$(getsebool "$1") || exit 1
saved=$(semanage boolean --list --noheading | sed -n "s/^$1 *(o[nf]* *, *\(o[nf]*\) *).*/\1/p")
echo "${live##* }, ${saved:-unknown} after a reboot"
