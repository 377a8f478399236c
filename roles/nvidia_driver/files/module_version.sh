#!/bin/sh
# Prints version and kernel of each module nvidia that kernel $1 would load: "440.33.01 for 4.18.0-80.7.2.el7.ppc64le". Read-only.
folder=/lib/modules/$1
[ -d "$folder" ] || { echo "$folder does not exist: kernel $1 is not installed" >&2; exit 1; }

find -L "$folder" -name 'nvidia.ko' -o -name 'nvidia.ko.[gx]z' | sort | while read -r module; do
  built_for=$(modinfo -F vermagic "$module")
  echo "$(modinfo -F version "$module") for ${built_for%% *}"
done
