#!/bin/sh
# Takes interfaces down and brings them up, by their files: started by hal_network (phase apply) in a unit of its own, while
# hal-network-rollback.timer runs. What the scripts said is in /run/hal/network/done when they have ended.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
run=/run/hal/network
sleep 2 # so that the answer of who started this gets out
{
  # NetworkManager lets go of what has NM_CONTROLLED=no once it has read that.
  ! command -v nmcli >/dev/null || nmcli connection reload
  for device; do
    ifdown "$device"
    ifup "$device"
  done
} >"$run/said" 2>&1
mv "$run/said" "$run/done"
