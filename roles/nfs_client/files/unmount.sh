# unmount PATH detach|leave: takes a mount and its automount away. Prints "unmounted", or "left" where it is in use or does not answer.
# Nothing here waits for long: an unmount asks the server.
path=$1
unit=$(systemd-escape --path "$path")
mounted() { awk -v path="$path" '$2 == path && $3 != "autofs" { found = 1 } END { exit !found }' /proc/self/mounts; }
any() { awk -v path="$path" '$2 == path { found = 1 } END { exit !found }' /proc/self/mounts; }
# Does a program work there? By links in /proc, which ask no server.
used() {
  timeout 20 find /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/[0-9]*/fd /proc/[0-9]*/map_files \
    \( -lname "$path" -o -lname "$path/*" \) 2>/dev/null | grep -q .
}
# "kernel PATH" for each file system below it that the kernel mounted by itself where the server has one, as it does again at the next access:
# of the same server, and in no line of fstab. "other PATH" for what somebody mounted there.
below() {
  { sed 's/^/fstab /' /etc/fstab && sed 's/^/mounts /' /proc/self/mounts; } | awk -v path="$path" '
    function server(source) { sub(/:\/.*/, "", source); return source }
    $1 == "fstab" { saved[$3] = 1 }
    $1 == "mounts" && $3 == path && $4 != "autofs" { ours = server($2) }
    $1 == "mounts" && index($3, path "/") == 1 {
      by_kernel = $4 ~ /^nfs4?$/ && server($2) == ours && !($3 in saved)
      print (by_kernel ? "kernel" : "other") " " $3
    }'
}
# What nobody would put back is not taken away, and not hidden either.
stays() { below | grep -q '^other ' || { [ "$1" = leave ] && used; }; }

any || exit 0
if stays "$2"; then
  echo left
  exit
fi
for child in $(below | sed -n 's/^kernel //p' | sort -r); do timeout 20 umount "$child" 2>/dev/null || break; done
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
