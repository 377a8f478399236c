#!/bin/sh
# Prints SELinux's mode in effect; "pending reboot: ..." where the declared mode $1 is in its file and only a boot takes SELinux there, which
# is so from and to "disabled". Read-only.
live=$(getenforce) || exit 1
saved=$(sed -n 's/^SELINUX=\([a-z]*\).*/\1/p' /etc/selinux/config)
case $1/$live in
  disabled/Disabled) ;;
  disabled/* | */Disabled) [ "$saved" != "$1" ] || live="pending reboot: $live now, $1 after it" ;;
esac
echo "$live"
