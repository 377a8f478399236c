#!/bin/sh
# Prints what sshd would lose by the configuration on standard input. Read-only.
#   $1  the file that this role wrote last; if it is not there, the configuration $2 of a new installation stands for it
#   $3  the script `accepted`; then accounts whose keys are shown
# "== unread" is there where sshd cannot read its file: why. Then "now" is what will be; "== in force" where an sshd runs with something else.
# "== now root" and so on are settings of sshd (now, bare of any file, base, then; for root, for anybody), "== now match"
# Match blocks as written, "== keys ACCOUNT" what opens an account. "== recorded" host keys of a file of this role, where there is or was one.
PATH=$PATH:/usr/sbin LC_ALL=C
export PATH LC_ALL
record=$1 shipped=$2 accepted=$3
shift 3
config=/etc/ssh/sshd_config
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# sshd shows nothing without a host key that it can read. Keys are compared by their names, so that one of nobody's stands for all.
ssh-keygen -q -t ed25519 -N '' -f "$folder/key" || exit 1
shown() { sshd -T -f "$1" -o "HostKey=$folder/key" -C "user=$2,host=localhost,addr=127.0.0.1"; }
without_keys() { sed '/^[[:space:]]*[Hh][Oo][Ss][Tt]\([Kk][Ee][Yy]\|[Cc][Ee][Rr][Tt][Ii][Ff][Ii][Cc][Aa][Tt][Ee]\)[[:space:]=]/d'; }
without_keys >"$folder/then"

problem=
if [ ! -e "$config" ]; then
  problem="$config is not there"
elif ! said=$({ shown "$config" root && shown "$config" nobody; } 2>&1 >/dev/null); then
  problem="sshd cannot read $config: $(printf '%s\n' "$said" | tail -n 2 | tr '\n' ' ')"
fi
mine=
if [ -e "$record" ] && [ ! -e "$config" ]; then mine=yes; fi
if head -n 1 "$config" 2>/dev/null | grep -qE '^# (Of the installation\. The|Written by the) role "ssh"'; then mine=yes; fi

if [ -e "$record" ]; then cat "$record"; elif [ -n "$mine" ] && [ -z "$problem" ]; then cat "$config"; else printf '%s\n' "$shipped"; fi >"$folder/all" || exit 1
without_keys <"$folder/all" >"$folder/base"
: >"$folder/bare"
if [ -z "$problem" ]; then cp "$config" "$folder/now"; else cp "$folder/then" "$folder/now"; fi || exit 1

if [ -n "$problem" ]; then
  printf '== unread\n%s\n' "$problem"
  [ -e "$record" ] || echo "== no way back"
  # What it read at its start stays in force until it is reloaded. 1: there is none; whatever else cannot tell that.
  pgrep -x sshd >/dev/null
  [ "$?" -eq 1 ] || [ -n "$mine" ] || echo "== in force"
fi
echo "== hostkeys"
# Of a configuration that it can read it shows none where it can read no key: nobody knows the node by one that is gone.
[ -n "$problem" ] || sshd -T -C user=root,host=localhost,addr=127.0.0.1 2>/dev/null | sed -n 's/^hostkey //p'
if [ -e "$record" ] || [ -n "$mine" ]; then echo "== recorded" && sed -n 's/^HostKey //p' "$folder/all"; fi || exit 1
for which in now bare base then; do
  for user in root nobody; do
    echo "== $which $user"
    shown "$folder/$which" "$user" || exit 1
  done
  echo "== $which match"
  sed -n '/^[[:space:]]*[Mm][Aa][Tt][Cc][Hh][[:space:]]/,$p' "$folder/$which"
done

for account; do
  getent passwd "$account" >/dev/null || continue
  echo "== keys $account"
  sh -c "$accepted" accepted keys "$account" -f "$folder/now" -o "HostKey=$folder/key" || exit 1
done
