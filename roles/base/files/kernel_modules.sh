#!/bin/sh
# Prints one line for each module that did not come with the kernel package (extra, updates, weak-updates), that kernel $1 would load, and that
# was built for another one. Further arguments are names of modules that are left out. Read-only.
kernel=$1
shift
folder=/lib/modules/$kernel
[ -e "$folder/modules.dep" ] || { echo "$folder: has no modules.dep: kernel $kernel is not installed" >&2; exit 1; }

for place in extra updates weak-updates; do
  [ ! -d "$folder/$place" ] || find -L "$folder/$place" -name '*.ko' -o -name '*.ko.[gx]z'
done | sort | while read -r module; do
  name=${module##*/}
  name=${name%%.ko*}
  case " $* " in *" $name "*) continue ;; esac
  built_for=$(modinfo -F vermagic "$module" 2>/dev/null)
  built_for=${built_for%% *}
  [ "$built_for" = "$kernel" ] || echo "$module is built for ${built_for:-a kernel that it does not name}"
done
