# unmount PATH detach|leave: takes a mount and its automount away. Prints "unmounted", or "left" where it is in use or does not answer.
# Nothing here waits for long: an unmount asks the server.
path=$1
unit=$(systemd-escape --path "$path")
mounted() { awk -v path="$path" '$2 == path && $3 != "autofs" { found = 1 } END { exit !found }' /proc/self/mounts; }
any() { awk -v path="$path" '$2 == path { found = 1 } END { exit !found }' /proc/self/mounts; }
# File systems below it that the kernel mounted by itself where the server has them; it does so again.
below() { awk -v path="$path/" 'index($2, path) == 1 && $3 ~ /^nfs4?$/ { print $2 }' /proc/self/mounts | sort -r; }

any || exit 0
for child in $(below); do timeout 20 umount "$child" 2>/dev/null; done
timeout 20 systemctl stop "$unit.automount" "$unit.mount" 2>/dev/null
if mounted; then timeout 20 umount "$path" 2>/dev/null; fi
if mounted && [ "$2" = detach ]; then timeout 20 umount -f -l "$path" 2>/dev/null; fi
if mounted; then
  systemctl start "$unit.automount" 2>/dev/null
  echo left
else
  if any; then timeout 20 umount -l "$path" 2>/dev/null; fi
  systemctl reset-failed "$unit.automount" "$unit.mount" 2>/dev/null # of units that are no longer there
  echo unmounted
fi
