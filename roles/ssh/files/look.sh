#!/bin/sh
# Prints what sshd would lose by the configuration on standard input, and who could miss it. Read-only.
#   $1  the file that this role wrote last; if it is not there, the configuration $2 of a new installation stands for it
#   $3  the script `accepted`; then accounts whose keys are shown
# "== now root" and so on are settings of sshd (now, bare of any file, base, then; for root, for anybody), "== now match"
# Match blocks as written, "== came" a line "METHOD ACCOUNT" for each login that logs still have, "== keys ACCOUNT" what opens an account.
PATH=$PATH:/usr/sbin LC_ALL=C
export PATH LC_ALL
record=$1 shipped=$2 accepted=$3
shift 3
newline='
'
config=/etc/ssh/sshd_config
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# sshd shows nothing without a host key that it can read. Keys are compared by their names, so that of today stands for all.
key=$(sshd -T -C user=root,host=localhost,addr=127.0.0.1) || exit 1
key=$(printf '%s\n' "$key" | sed -n 's/^hostkey //p')
without_keys() { sed '/^[[:space:]]*[Hh][Oo][Ss][Tt]\([Kk][Ee][Yy]\|[Cc][Ee][Rr][Tt][Ii][Ff][Ii][Cc][Aa][Tt][Ee]\)[[:space:]=]/d'; }
without_keys >"$folder/then"
ours='# Of the installation. The role "ssh"|# Written by the role "ssh"'
if [ -e "$record" ]; then cat "$record"; elif head -n 1 "$config" | grep -qE "^($ours)"; then cat "$config"; else printf '%s\n' "$shipped"; fi >"$folder/all" || exit 1
without_keys <"$folder/all" >"$folder/base"
cp "$config" "$folder/now" && : >"$folder/bare" || exit 1

echo "== hostkeys"
printf '%s\n' "$key"
[ ! -e "$record" ] || { echo "== recorded" && sed -n 's/^HostKey //p' "$record"; }
for which in now bare base then; do
  for user in root nobody; do
    echo "== $which $user"
    sshd -T -f "$folder/$which" -o "HostKey=${key%%$newline*}" -C "user=$user,host=localhost,addr=127.0.0.1" || exit 1
  done
  echo "== $which match"
  sed -n '/^[[:space:]]*[Mm][Aa][Tt][Cc][Hh][[:space:]]/,$p' "$folder/$which"
done

echo "== came"
{
  zcat -f /var/log/secure* 2>/dev/null
  journalctl --quiet --no-pager --output=cat _COMM=sshd 2>/dev/null
} | sed -n 's/.*Accepted \([^ ]*\) for \([^ ]*\) from .*/\1 \2/p' | sort -u
for file in /var/log/wtmp*; do
  [ ! -s "$file" ] || last -w -f "$file"
done | awk 'NF > 3 && $1 !~ /^(reboot|runlevel|shutdown|root|wtmp.*)$/ { print "session " $1 }' | sort -u

for account; do
  getent passwd "$account" >/dev/null || continue
  echo "== keys $account"
  sh -c "$accepted" accepted keys "$account" || exit 1
done
