#!/bin/sh
# Prints one line for whatever answers DHCP here, or configures dnsmasq, and is not this role's; nothing when there is none. Read-only.
# Exit status 1: that cannot be said. $1: the file of this role's. $2: dnsmasq's own file, else /etc/dnsmasq.conf. $3: its folder, else /etc/dnsmasq.d.
own=$1 main=${2:-/etc/dnsmasq.conf} folder=${3:-/etc/dnsmasq.d}

# One daemon reads all of them: our port=0 would end the name server that another file makes of it, and their ranges would be served beside ours.
for file in "$main" "$folder"/*; do
  case $file in "$own" | *~ | *.rpmnew | *.rpmsave | *.rpmorig) continue ;; esac
  [ -f "$file" ] || continue
  # What the package's own file says is no configuration: where others are, and as whom it runs.
  line=$(grep -nvE '^[[:space:]]*(#|$|conf-dir=|user=|group=)' "$file" | head -n 1)
  [ -n "$line" ] && echo "$file:$line"
done

# Any program but dnsmasq that has the port: dhcpd, a relay. Where nobody can say that, it is not taken for none.
sockets=$(ss -lunp 'sport = :67') || { echo 'ss (package iproute) does not say what listens on udp/67' >&2; exit 1; }
echo "$sockets" | grep -o '"[^"]*",pid=[0-9]*' | tr -d '"' | sort -u | grep -v '^dnsmasq,' | while IFS= read -r program; do
  echo "$program listens on udp/67"
done

units=$(systemctl show --property=Id,UnitFileState dhcpd.service dhcrelay.service) || exit 1
echo "$units" | awk -F= '
  $1 == "Id" { unit = $2 }
  $1 == "UnitFileState" { state[unit] = $2 }
  END { for (unit in state) if (state[unit] ~ /^enabled/) print unit " starts at boot" }' | sort
exit 0
