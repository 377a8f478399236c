#!/bin/sh
# Whether MariaDB knows the options in $1, and can read their values. It has no switch for that; --help reads them, and
# ends. Its exit status is 0 for some of them, so its words count. In a first check the program may not be there.
# No percent sign in here: this stands in `validate`, which is a format.
program=${MYSQLD:-/usr/libexec/mysqld}
[ -x "$program" ] || exit 0
said=$("$program" --defaults-file="$1" --help --verbose 2>&1 >/dev/null)
if echo "$said" |
  grep -E 'unknown (variable|option)|Unknown suffix|Error while setting|Incorrect .* value|Wrong group definition|defaults handling' >&2; then
  exit 1
fi
exit 0
