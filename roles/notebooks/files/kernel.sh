#!/bin/bash
# Written by the role "notebooks"; changes made here are lost.
# kernel MODULE CONNECTION_FILE   start a kernel with the module's environment, activated as for everybody who loads it
# kernel --check MODULE           say in one line why it would not start; nothing when it would
check=
[ "$1" != --check ] || { check=1; shift; }
complain() {
  if [ -n "$check" ]; then echo "$1"; exit 0; fi
  echo "kernel: $1" >&2
  exit 1
}
if ! type module >/dev/null 2>&1; then
  for file in /etc/profile.d/00-modulepath.sh /etc/profile.d/z00_lmod.sh; do
    [ ! -r "$file" ] || . "$file"
  done
fi
type module >/dev/null 2>&1 || complain "there is no command module on this node"
module --force purge >/dev/null 2>&1
# Of the notebook that starts it: they would lead into the notebook's own libraries.
unset PYTHONHOME PYTHONPATH
said=$(module load "$1" 2>&1 >/dev/null) || complain "module load $1: $(echo $said)"
module load "$1" >/dev/null 2>&1 || complain "module load $1 fails"
python=$(type -P python) || complain "$1 has no python"
if [ -n "$check" ]; then
  said=$("$python" -c 'import ipykernel, ipykernel_launcher' 2>&1 | tail -n 1)
  case $said in "" | *"stand-in of the virtual HAL"*) ;; *) echo "$python: $said" ;; esac
  exit 0
fi
exec "$python" -m ipykernel_launcher -f "$2"
