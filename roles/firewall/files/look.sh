#!/bin/sh
# Prints what filters packets on this node, and what could be missed if firewalld did it as declared. Read-only.
#   $1  the file with what this role had in force last; $2 the script `open`
# "== state" firewalld's, "== services" of other firewalls, "== rules" and "== tables" in the kernel, "== zone NAME" and "== direct"
# files of firewalld, "== open" what it has in force or "== unread" why it does not say it, "== former" $1, "== listening" where daemons listen, "== steps" of jobs that run.
PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
export PATH LC_ALL

echo "== state"
systemctl is-active firewalld.service
[ "$?" -le 4 ] || exit 1
echo "== services"
for name in iptables ip6tables nftables; do
  active=$(systemctl is-active "$name.service") enabled=$(systemctl is-enabled "$name.service" 2>/dev/null)
  [ "$active" != active ] && [ "$enabled" != enabled ] || echo "$name.service is $active, ${enabled:-unknown}"
done

echo "== rules"
for family in ipv4 ipv6; do
  case $family in ipv4) save=iptables-save ;; *) save=ip6tables-save ;; esac
  command -v $save >/dev/null || continue
  [ $family = ipv4 ] || [ -e /proc/net/if_inet6 ] || continue  # ipv6.disable=1: the kernel has no rules, and the program fails
  saved=$($save 2>/dev/null) || exit 1
  printf '%s\n' "$saved" | awk -v family=$family '
    /^\*/ { table = substr($0, 2) }
    /^:[A-Z]+ (DROP|REJECT)/ { print family, table, "policy", substr($1, 2), $2 }
    /^-A / { print family, table, $0 }'
done
echo "== tables"
if command -v nft >/dev/null; then nft list tables || exit 1; fi

for file in /etc/firewalld/zones/*.xml; do
  [ -e "$file" ] || continue
  name=${file##*/}
  echo "== zone ${name%.xml}"
  cat "$file" && echo || exit 1
done
echo "== direct"
[ ! -e /etc/firewalld/direct.xml ] || { cat /etc/firewalld/direct.xml && echo; } || exit 1
echo "== open"
if systemctl is-active --quiet firewalld.service; then
  if said=$(sh -c "$2" open 2>&1); then printf '%s\n' "$said"; else echo "== unread" && printf '%s\n' "$said" | tail -n 1; fi
fi
[ ! -e "$1" ] || { echo "== former" && cat "$1"; } || exit 1

echo "== listening"
listening=$(ss -lntup) || exit 1
printf '%s\n' "$listening" | awk 'NR > 1 {
  name = ""
  if (match($0, /"[^"]*"/)) name = substr($0, RSTART + 1, RLENGTH - 2)
  print $1, $5, name }'
echo "== steps"
pgrep -c -x slurmstepd
[ "$?" -le 1 ]
