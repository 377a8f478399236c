# Prints what is wrong with the layer between Spectrum Scale and kernel $1; nothing when it is built, and from the installed sources.
module=/lib/modules/$1/extra/mmfs26.ko
if [ ! -e "$module" ]; then
  echo "no GPL layer for kernel $1"
  exit 0
fi
installed=$(rpm --query --queryformat '%{INSTALLTIME}\n' gpfs.gpl 2>/dev/null | sort -n | tail -n 1) || installed=
case "$installed" in
'' | *[!0-9]*) echo "package gpfs.gpl is not installed" ;;
*) [ "$(stat -c %Y "$module")" -ge "$installed" ] || echo "the GPL layer for kernel $1 is older than package gpfs.gpl" ;;
esac
exit 0
