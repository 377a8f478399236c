#!/bin/sh
# Prints for how many days the OpenSSH certificate $1 is still valid. Read-only.
end=$(ssh-keygen -L -f "$1" | sed -n 's/^ *Valid: from [^ ]* to //p')
[ -n "$end" ] || { echo "$1: no certificate with an end" >&2; exit 1; }
echo $(( ($(date -d "$end" +%s) - $(date +%s)) / 86400 ))
