#!/bin/sh
# Prints "== came", and a line "METHOD ACCOUNT" for each way in by which sshd let somebody in during the last $1 days, as its logs have it;
# "session ACCOUNT" for who came from another machine as wtmp has it, which does not say how. Sessions at a console are none. Read-only.
# Of each log the end alone is read: a login node writes gigabytes.
PATH=$PATH:/usr/sbin LC_ALL=C
export PATH LC_ALL
days=$1 bytes=67108864 lines=200000
since=$(date -d "$days days ago" '+%Y-%m-%d') || exit 1

recent() { find /var/log -maxdepth 1 -type f -name "$1*" -size +0 -mtime "-$days"; }

echo "== came"
{
  recent secure | while read -r file; do
    case $file in
      *.gz) gzip -dc "$file" ;; *.xz) xz -dc "$file" ;; *.bz2) bzip2 -dc "$file" ;; *.zst) zstd -dcq "$file" ;;
      *) cat "$file" ;;
    esac | tail -c "$bytes"
  done
  # With --since, that of systemd 219 shows the first so many lines and not the last.
  journalctl --quiet --no-pager --output=short-iso --lines="$lines" _COMM=sshd | awk -v since="$since" '$1 >= since'
} 2>/dev/null | sed -n 's/^.* sshd\(\[[0-9]*\]:\| [0-9][0-9]* .*\) Accepted \([^ ]*\) for \([^ ]*\) from .*/\2 \3/p' | sort -u
recent wtmp | while read -r file; do
  last -w -i -n "$lines" -f "$file"
done | awk '$2 ~ /^pts\// && $3 ~ /[.:]/ && $3 != "0.0.0.0" { print "session " $1 }' | sort -u
