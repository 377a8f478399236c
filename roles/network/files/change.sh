#!/bin/sh
# Takes interfaces down and brings them up, by their files: started by hal_network (phase apply) in a unit of its own, while
# hal-network-rollback.timer runs. What the scripts said is in /run/hal/network/done when they have ended.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
run=/run/hal/network
scripts=/etc/sysconfig/network-scripts
sleep 2 # so that the answer of who started this gets out
{
  for device; do
    members=$(grep -lx "MASTER=$device" "$scripts"/ifcfg-*)
    # NetworkManager lets go of what has NM_CONTROLLED=no once it has read that. Of this interface and its members: "reload" would be of all.
    if command -v nmcli >/dev/null; then
      for file in "$scripts/ifcfg-$device" $members; do
        nmcli connection load "$file"
      done
    fi
    ifdown "$device"
    # A port that becomes a member would keep its address, and the address its routes.
    for file in $members; do
      ip -4 addr flush dev "${file##*/ifcfg-}"
    done
    ifup "$device"
  done
} >"$run/said" 2>&1
mv "$run/said" "$run/done"
