#!/bin/sh
# Whether httpd can read its whole configuration with $2 in the place of $1. What is at $1 now is left out: a fault of
# it must not keep a file out that has none. IncludeOptional conf.d/*.conf is the last line of Enterprise Linux's
# httpd.conf. No percent sign in here: this stands in `validate`, which is a format.
folder=$(dirname "$1")
whole=$(mktemp) || exit 1
trap 'rm -f "$whole"' EXIT
{
  sed '/^[[:space:]]*Include\(Optional\)\{0,1\}[[:space:]]\{1,\}conf\.d\/\*\.conf/d' "${HTTPD_CONF:-/etc/httpd/conf/httpd.conf}" || exit 1
  for other in "$folder"/*.conf; do
    [ "$other" = "$1" ] || [ ! -e "$other" ] || echo "Include \"$other\""
  done
  echo "Include \"$2\""
} >"$whole" || exit 1
httpd -t -f "$whole"
