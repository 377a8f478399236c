#!/bin/sh
# Prints "name = value" for each kernel setting named, as the next boot will set it: the last word of all sysctl.d files, in the order
# in which systemd-sysctl reads them (by file name; of equal names the one in /etc, then /run, then /usr/lib). A setting that no
# file has is not printed. Read-only.
for folder in /usr/lib/sysctl.d /run/sysctl.d /etc/sysctl.d; do
  for file in "$folder"/*.conf; do [ -e "$file" ] && echo "${file##*/}"; done
done | sort -u | while read -r name; do
  for folder in /etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d; do
    [ -e "$folder/$name" ] && { cat "$folder/$name"; echo; break; }
  done
done | awk -v wanted="$*" '
  BEGIN { count = split(wanted, names, " ") }
  /^[[:space:]]*[#;]/ || !/=/ { next }
  {
    name = $0; sub(/=.*/, "", name); gsub(/^[-[:space:]]+|[[:space:]]+$/, "", name); gsub("/", ".", name)
    value = $0; sub(/[^=]*=[[:space:]]*/, "", value); gsub(/[[:space:]]+/, " ", value); sub(/ $/, "", value)
    last[name] = value
  }
  END { for (i = 1; i <= count; i++) if (names[i] in last) print names[i] " = " last[names[i]] }'
