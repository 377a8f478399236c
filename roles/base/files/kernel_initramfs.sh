#!/bin/sh
# Prints one line for each thing that changed since the initramfs of kernel $1 was built and that dracut would take in: options and blacklists of
# drivers, its own settings. A folder counts too: a file that was removed, or came with an old time, shows there. Read-only.
image=/boot/initramfs-$1.img
[ -e "$image" ] || { echo "$image: does not exist" >&2; exit 1; }

for place in /etc/modprobe.d /etc/dracut.conf /etc/dracut.conf.d; do
  [ ! -e "$place" ] || find "$place" -maxdepth 1 \( -type d -o -name '*.conf' \) -newer "$image" -printf '%p changed at %TY-%Tm-%Td %.8TT\n'
done | sort
