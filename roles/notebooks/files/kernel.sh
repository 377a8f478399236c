#!/bin/bash
# Written by the role "notebooks"; changes made here are lost.
# kernel MODULE CONNECTION_FILE   start a kernel with the module's environment, activated as for everybody who loads it
# kernel --check MODULE...        a line for each that would not start, and why; nothing when all would
if ! type module >/dev/null 2>&1; then
  for file in /etc/profile.d/00-modulepath.sh /etc/profile.d/z00_lmod.sh; do
    [ ! -r "$file" ] || . "$file"
  done
fi

activate() { # MODULE: load it and nothing else, and find its Python
  type module >/dev/null 2>&1 || { echo "there is no command module on this node" >&2; return 1; }
  module --force purge >/dev/null 2>&1
  # Of the notebook that starts it: they would lead into the notebook's own libraries.
  unset PYTHONHOME PYTHONPATH
  module load "$1" >/dev/null || return 1
  python=$(type -P python) || { echo "it has no python" >&2; return 1; }
}

check() { # MODULE: say in a line why a kernel of it would not start
  local said status
  said=$(
    activate "$1" 2>&1 || exit 3
    words=$(timeout 60 "$python" -c 'import ipykernel, ipykernel_launcher' 2>&1 >/dev/null) && exit 0
    [ $? != 124 ] || words="no answer within 60 seconds"
    printf "%s\n" "${words:-$python ends at once}"
    exit 1
  )
  status=$?
  case $status in
    0) ;;
    3) printf 'module load %s: %s\n' "$1" "$(printf %s "$said" | tr -s '[:space:]' ' ')" ;;
    *) printf '%s: %s\n' "$1" "$(printf %s "$said" | tail -n 1)" ;;
  esac
}

if [ "$1" = --check ]; then
  shift
  for one; do check "$one" & done | LC_ALL=C sort
  exit 0
fi
activate "$1" || { echo "kernel: module load $1 fails" >&2; exit 1; }
exec "$python" -m ipykernel_launcher -f "$2"
