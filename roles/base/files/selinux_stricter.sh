#!/bin/sh
# Prints what speaks against SELinux's mode $1 on this node, a line each; nothing where that makes it no stricter, now or after a boot. Read-only.
# $2 is the log of auditd.
log=$2

strictness() {
  case $1 in [Ee]nforcing) echo 2 ;; [Pp]ermissive) echo 1 ;; [Dd]isabled) echo 0 ;; *) echo -1 ;; esac
}

live=$(getenforce) || live='in a mode that getenforce does not say'
saved=$(sed -n 's/^SELINUX=\([a-z]*\).*/\1/p' /etc/selinux/config | tail -n 1)
wanted=$(strictness "$1")
[ "$(strictness "$live")" -lt "$wanted" ] || [ "$(strictness "$saved")" -lt "$wanted" ] || exit 0

echo "SELinux is $live now, ${saved:-nothing} in /etc/selinux/config, declared $1"
case $live in
  Disabled) echo "the boot into it labels every file first, which may take long, and nobody knows yet what it denies: permissive first" ;;
  Permissive | Enforcing) # the daemons that were denied something, the most often first
    if [ ! -r "$log" ]; then
      echo "what it denied is not known: $log cannot be read"
    elif grep -q '^type=AVC .* denied ' "$log"; then
      echo "denied in $log: $(sed -n 's/^type=AVC .* denied .* comm="\([^"]*\)".*/\1/p' "$log" | tr -cd '[:print:]\n' |
        sort | uniq -c | sort -rn | awk 'NR <= 5 { said = said (said ? ", " : "") $2 " (" $1 ")" }; END { print said }')"
    fi
    ;;
esac
