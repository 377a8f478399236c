#!/bin/sh
# Prints the repositories that the package manager $1 uses, one id a line, sorted: every section of its own file and of the *.repo files in
# its folders but "main", unless it is disabled (yum.conf(5), dnf.conf(5)). Reads files: "repolist" costs a second, and yum's asks the
# mirrors. Read-only.
case $1 in
  yum) main=/etc/yum.conf ;;
  dnf) main=/etc/dnf/dnf.conf ;;
  *) echo "yum or dnf, not $1" >&2; exit 1 ;;
esac
[ -r "$main" ] || { echo "$main cannot be read" >&2; exit 1; }
folders=$(sed -n 's/^reposdir[[:space:]]*=[[:space:]]*//p' "$main" | tr ',' ' ')
for folder in ${folders:-/etc/yum.repos.d /etc/yum/repos.d /etc/distro.repos.d}; do
  for file in "$folder"/*.repo; do
    [ ! -e "$file" ] || set -- "$@" "$file"
  done
done
shift
awk '
  /^[[:space:]]*[#;]/ { next }
  /^\[.*\]/ { id = $0; sub(/^\[/, "", id); sub(/\].*/, "", id); used[id] = 1; next }
  /^enabled[[:space:]]*[=:]/ {
    value = tolower($0); sub(/^[^=:]*[=:][[:space:]]*/, "", value); sub(/[[:space:]]+$/, "", value)
    used[id] = value !~ /^(0|no|off|false|never)$/
  }
  END { for (id in used) if (used[id] && id != "main") print id }' "$main" "$@" | LC_ALL=C sort
