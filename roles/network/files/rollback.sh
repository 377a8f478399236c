#!/bin/sh
# Puts files of interfaces, and what the kernel had of them, back as they were before a change that nobody confirmed: run by
# hal-network-rollback.timer, at boot, or by hand. Written by hal_network (phase apply): the folder "rollback" has copies of files, and
# "absent" the names of those that were not there; "live" is what the kernel had, gone after a boot. By ip and /sys alone: it does not
# depend on what it repairs.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
state=/var/lib/hal/network
live=/run/hal/network/live
scripts=/etc/sysconfig/network-scripts
sys=/sys/class/net

# Whoever renames it first has it: this, or a confirmation. "undone" is there before if an earlier run of this was cut short.
[ ! -d "$state/rollback" ] || mv -T "$state/rollback" "$state/undone"
cd "$state/undone" 2>/dev/null || exit 0
systemctl stop hal-network-change.service hal-network-rollback.timer 2>/dev/null

# NetworkManager keeps what a file said until it is told of that file, also when it is gone.
told() {
  ! command -v nmcli >/dev/null || nmcli connection load "$scripts/$1" 2>/dev/null
}

while read -r name; do
  rm -f "$scripts/$name"
  told "$name"
done <absent
for file in files/*; do
  [ -s "$file" ] || continue # nothing, or what a power cut left of it
  cp -p "$file" "$scripts/"
  told "${file#files/}"
done

# DEVICE MODE MEMBER...
rebuild_bond() {
  device=$1
  ip link set dev "$device" down
  read -r members <"$sys/$device/bonding/slaves"
  for member in $members; do echo "-$member" >"$sys/$device/bonding/slaves"; done
  echo "$2" >"$sys/$device/bonding/mode"
  shift 2
  for member; do
    ip link set dev "$member" down
    echo "+$member" >"$sys/$device/bonding/slaves"
  done
}

if [ -f "$live" ]; then
  while read -r device what rest; do
    # shellcheck disable=SC2086 # words of their own
    case $what in
      absent) [ ! -d "$sys/$device" ] || ip link delete dev "$device" ;;
      mode) echo "$rest" >"$sys/$device/mode" ;;
      alone) [ ! -e "$sys/$device/master" ] || ip link set dev "$device" nomaster ;;
      bond) rebuild_bond "$device" $rest ;;
      flush) ip -4 addr flush dev "$device" ;;
      mtu) ip link set dev "$device" mtu "$rest" ;;
      up | down) ip link set dev "$device" "$what" ;;
      addr) ip addr add $rest dev "$device" ;;
      zone) timeout 10 firewall-cmd --quiet ${rest:+"--zone=$rest"} --change-interface="$device" </dev/null ;;
      *) [ "$device" != route ] || ip route replace "$what" $rest ;;
    esac
  done <"$live"
  rm -f "$live"
fi
logger -t hal-network "not confirmed: interfaces and their files are as they were before"
sync
cd / && rm -rf "$state/undone"
