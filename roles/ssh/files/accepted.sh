#!/bin/sh
# Prints what opens the account $2 by sshd's own reading of its configuration, a line each: with $1 "principals" the principals of user
# certificates, with "keys" the lines of authorized_keys; and the program that sshd asks for more of them, if there is one. Read-only.
settings=$(sshd -T -C "user=$2,host=localhost,addr=127.0.0.1") || exit 1
case $1 in
  principals) name=AuthorizedPrincipals comment='#.*' ;;
  keys) name=AuthorizedKeys comment='^[[:space:]]*#.*' ;;
  *) echo "principals or keys, not $1" >&2; exit 1 ;;
esac
setting() { printf '%s\n' "$settings" | sed -n "s/^$(echo "$name$1" | tr '[:upper:]' '[:lower:]') //p"; }

program=$(setting Command)
[ "${program:-none}" = none ] || echo "${name}Command $program"

files=$(setting File)
if [ "${files:-none}" = none ]; then
  [ "$1" = keys ] || echo "$2"  # without a list sshd takes a certificate with the account's own name
  exit 0
fi
home=$(getent passwd "$2" | cut -d: -f6)
set -f  # a name with a * is a name
for file in $files; do
  file=$(printf '%s' "$file" | sed "s|%h|$home|g; s|%u|$2|g; s|%%|%|g")
  case $file in
    /*) ;;
    *) [ -n "$home" ] || { echo "$2: no such account" >&2; exit 1; }; file=$home/$file ;;
  esac
  [ ! -e "$file" ] || sed "s/$comment//; s/^[[:space:]]*//; s/[[:space:]]*\$//; /^\$/d" "$file" || exit 1
done
