#!/bin/sh
# Prints what the running firewalld lets in, a line each, sorted: "default zone NAME"; of the default zone and of each with an interface
# or a source "ZONE port 22/tcp", "ZONE rule ...", "ZONE interface eth0", ...; "direct rule ...". Read-only.
PATH=$PATH:/usr/sbin:/usr/bin LC_ALL=C
export PATH LC_ALL
default=$(firewall-cmd --get-default-zone) || exit 1
zones=$(firewall-cmd --list-all-zones) || exit 1
rules=$(firewall-cmd --direct --get-all-rules) || exit 1
{
  echo "default zone $default"
  printf '%s\n' "$rules" | sed -n 's/..*/direct rule &/p'
  printf '%s\n' "$zones" | awk -v default_zone="$default" '
    function show(kind, value) { gsub(/[ \t]+/, " ", value); gsub(/^ | $/, "", value); if (value != "") lines[++count] = zone " " kind " " value }
    function flush(   at) { if (active) for (at = 1; at <= count; at++) print lines[at]; count = 0; active = 0 }
    function words(kind, value,   part, n, at) { n = split(value, part, " "); for (at = 1; at <= n; at++) show(kind, part[at]) }
    /^[^ \t]/ { flush(); zone = $1; active = (zone == default_zone || /[(, ]active[,)]/); next }
    /^\t/ { show(key == "rich rules" ? "rule" : "forward", $0); next }
    /^  [a-z -]+:/ {
      key = $0; sub(/^  /, "", key); value = key; sub(/:.*/, "", key); sub(/^[^:]*: ?/, "", value)
      if (key == "target") show("target", value)
      else if (key == "masquerade") { if (value == "yes") show("masquerade", value) }
      else if (key == "rich rules") show("rule", value)
      else if (key == "forward-ports") words("forward", value)
      else if (key == "interfaces") words("interface", value)
      else if (key == "sources") words("source", value)
      else if (key == "services") words("service", value)
      else if (key == "ports") words("port", value)
      else if (key == "protocols") words("protocol", value)
      else if (key == "source-ports") words("source-port", value)
      else if (key == "icmp-blocks") words("icmp-block", value)
    }
    END { flush() }'
} | sort -u
