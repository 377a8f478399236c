# Prints "served" where a version of the check that did not know how to observe has acted on this node: its list $1 says nothing of it, and $2, which each
# of its runs since the boot writes, is there; and nobody has kept in $3 since when it is observed. With "keep" as $4 that is kept as long ago.
grep -qs '"checks"' "$1" || exit 0
! grep -qs '"observe_days"' "$1" && [ -e "$2" ] && [ ! -e "$3" ] || exit 0
[ "$4" != keep ] || { umask 077 && echo '{"began": 0}' >"$3.new" && mv "$3.new" "$3"; } || exit
echo served
