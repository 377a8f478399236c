# Prints what is there of another stack of InfiniBand than $1, inbox or mlnx_ofed; nothing where there is none. Read-only.
# The distribution's counts where it is in use: a package alone comes along with others (libibverbs), and udev starts its service wherever an adapter is.
# Somebody wants it where that is enabled, and uses it where a program has an adapter open, IPoIB is up, the kernel has storage over it, or a
# job runs, which may begin to communicate.
ofed=$(ofed_info -s 2>/dev/null)
if [ "$1" = inbox ]; then
  echo "${ofed%:}" | tr -cd '[:print:]\n' | cut -c 1-80
  exit 0
fi
[ -z "$ofed" ] || exit 0
package=$(rpm --query rdma-core 2>/dev/null | grep '^rdma-core-[0-9]' | head -n 1)
[ -n "$package" ] || exit 0
used=$(find /proc/[0-9]*/fd -lname '/dev/infiniband/*' 2>/dev/null | sed 's|.*/\([0-9]*\)/fd/.*|\1|' | sort -un | while read -r pid; do
  echo "process $pid ($(tr -dc '[:print:]' 2>/dev/null <"/proc/$pid/comm")) has an adapter open"
done | head -n 1)
for net in /sys/class/net/*; do
  [ "$(cat "$net/type" 2>/dev/null)" = 32 ] && [ "$(cat "$net/operstate" 2>/dev/null)" = up ] && used=${used:-${net##*/} is up}
done
for name in rpcrdma ib_srp ib_iser nvme_rdma; do
  [ "$(cat "/sys/module/$name/refcnt" 2>/dev/null || echo 0)" = 0 ] || used=${used:-kernel module $name is in use}
done
pgrep -x slurmstepd >/dev/null && used=${used:-a job runs}
systemctl is-enabled --quiet rdma.service >/dev/null 2>&1 && used=${used:-rdma.service is enabled}
[ -z "$used" ] || echo "$package ($used)"
exit 0
