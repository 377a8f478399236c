#!/bin/sh
# Before a change: keeps what there is, and starts the timer that puts it back unless a new connection confirms the change. What an earlier run
# kept, and nobody confirmed, was the last that let somebody in: it stays. $1 is "fresh" where this run has installed firewalld.
PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
export PATH LC_ALL
state=/var/lib/hal/firewall
scripts=/etc/sysconfig/network-scripts
systemctl restart hal-firewall-rollback.timer || exit 1
rm -rf "$state/confirmed" "$state/new"
[ ! -d "$state/rollback" ] || exit 0
mkdir -p "$state/new/ifcfg" && cd "$state/new" || exit 1
cp -a /etc/firewalld etc || exit 1
for file in "$scripts"/ifcfg-*; do
  [ ! -e "$file" ] || cp -a "$file" ifcfg/ || exit 1
done
systemctl is-active firewalld.service >active
if [ "$1" = fresh ]; then echo disabled; else systemctl is-enabled firewalld.service 2>/dev/null; fi >enabled
for name in iptables ip6tables nftables; do
  [ "$(systemctl is-active $name.service)" != active ] || echo "$name.service" >>services.active
  [ "$(systemctl is-enabled $name.service 2>/dev/null)" != enabled ] || echo "$name.service" >>services.enabled
done
if ! grep -qx active active; then
  for family in ip ip6; do
    [ $family = ip ] || [ -e /proc/net/if_inet6 ] || continue  # ipv6.disable=1
    ! command -v ${family}tables-save >/dev/null || ${family}tables-save >${family}tables || exit 1
  done
fi
sync
mv -T "$state/new" "$state/rollback"
