# Prints the settings $2 of a clean-up that runs here since a version of this role that asked for no permission; nothing where none does. $1 is the file of
# its timer, $3 the folder of permissions, which later versions make before they write anything else. Read-only.
[ ! -e "$3" ] || exit 0
grep -q '^# Written by the role "local_storage"' "$1" 2>/dev/null || exit 0
for question in is-enabled is-active; do
  systemctl "$question" --quiet hal-scratch-clean.timer >/dev/null 2>&1 || exit 0
done
cat "$2"
