#!/bin/sh
# Asks the list of revoked keys $1, as sshd asks it at each login, about the public keys and certificates that follow: each a line of a .pub
# file, with its name as comment. Prints how many of them it refuses, and the names of those that it lets in. Read-only.
list=$1
shift
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

number=0
for sample; do
  number=$((number + 1))
  printf '%s\n' "$sample" >"$number" || exit 1
done
[ $# -eq 0 ] || set -- *
said=$(ssh-keygen -Q -f "$list" "$@")
status=$?
refused=$(printf '%s\n' "$said" | grep -c ': REVOKED$')
# 1: some are refused. 255: the list or one of these cannot be read.
[ "$status" -le 1 ] && [ "$refused" -ge "$status" ] || exit 1
let_in=$(printf '%s\n' "$said" | sed -n 's/^[0-9]* (\(.*\)): ok$/\1/p' | paste -sd , - | sed 's/,/, /g')
echo "$refused of $# refused${let_in:+, let in: $let_in}"
