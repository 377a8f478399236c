#!/bin/sh
# Prints what opens the account $2 by sshd's own reading of its configuration, a line each: with $1 "principals" the principals of user
# certificates, with "keys" the lines of authorized_keys; and the program that sshd asks for more of them, if there is one. Read-only.
# Further words are options of sshd, as -f FILE.
what=$1 account=$2
shift 2
settings=$(sshd -T "$@" -C "user=$account,host=localhost,addr=127.0.0.1") || exit 1
case $what in
  principals) name=AuthorizedPrincipals comment='#.*' ;;
  keys) name=AuthorizedKeys comment='^[[:space:]]*#.*' ;;
  *) echo "principals or keys, not $what" >&2; exit 1 ;;
esac
setting() { printf '%s\n' "$settings" | sed -n "s/^$(echo "$name$1" | tr '[:upper:]' '[:lower:]') //p"; }

program=$(setting Command)
[ "${program:-none}" = none ] || echo "${name}Command $program"

files=$(setting File)
if [ "${files:-none}" = none ]; then
  [ "$what" = keys ] || echo "$account"  # without a list sshd takes a certificate with the account's own name
  exit 0
fi
home=$(getent passwd "$account" | cut -d: -f6)
set -f  # a name with a * is a name
for file in $files; do
  file=$(printf '%s' "$file" | sed "s|%h|$home|g; s|%u|$account|g; s|%%|%|g")
  case $file in
    /*) ;;
    *) [ -n "$home" ] || { echo "$account: no such account" >&2; exit 1; }; file=$home/$file ;;
  esac
  [ ! -e "$file" ] || sed "s/$comment//; s/^[[:space:]]*//; s/[[:space:]]*\$//; /^\$/d" "$file" || exit 1
done
