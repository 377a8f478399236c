#!/bin/sh
# Prints what the running firewalld lets in, a line each, sorted: "default zone NAME"; of the default zone and of each with an interface
# or a source "ZONE port 22/tcp", "ZONE rule ...", "ZONE interface eth0", ...; "direct rule ...". Read-only.
# Over D-Bus, as firewall-cmd does it, which is a Python program that takes ten times as long (FirewallD1(5): getZoneSettings).
PATH=$PATH:/usr/sbin:/usr/bin LC_ALL=C
export PATH LC_ALL

ask() {  # interface, method, arguments
  interface=org.fedoraproject.FirewallD1$1 method=$2
  shift 2
  busctl call org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1 "$interface" "$method" "$@"
}

# A word of the answer on each line; busctl escapes what stands between quotes.
words() {
  awk '{
    sub(/^[^ ]+ */, ""); gsub(/\\\\/, "\001"); gsub(/\\"/, "\002")
    n = split($0, part, "\"")
    for (at = 1; at <= n; at++) {
      gsub(/\001/, "\\", part[at]); gsub(/\002/, "\"", part[at])
      if (at % 2 == 0) { print part[at]; continue }
      count = split(part[at], bare, " ")
      for (one = 1; one <= count; one++) print bare[one]
    }
  }'
}

# Fields of (sssbsasa(ss)asba(ssss)asasasasa(ss)b), in their order.
zone() {
  awk -v zone="$1" '
    { word[NR] = $0 }
    function show(kind, value) { gsub(/[ \t]+/, " ", value); print zone " " kind " " value }
    function each(kind,   left) { for (left = word[at++]; left > 0; left--) show(kind, word[at++]) }
    function pairs(kind,   left) { for (left = word[at++]; left > 0; left--) { show(kind, word[at] "/" word[at + 1]); at += 2 } }
    END {
      if (NR < 16) exit 1
      show("target", word[5] == "{chain}_{zone}" ? "default" : word[5])
      at = 6
      each("service"); pairs("port"); each("icmp-block")
      if (word[at++] == "true") show("masquerade", "yes")
      for (left = word[at++]; left > 0; left--) {
        show("forward", "port=" word[at] ":proto=" word[at + 1] ":toport=" word[at + 2] ":toaddr=" word[at + 3]); at += 4
      }
      each("interface"); each("source"); each("rule"); each("protocol"); pairs("source-port")
    }'
}

default=$(ask '' getDefaultZone) && active=$(ask .zone getActiveZones) && rules=$(ask .direct getAllRules) || exit 1
default=$(printf '%s\n' "$default" | words)
# {zone: {"interfaces" or "sources": names}}
active=$(printf '%s\n' "$active" | words | awk '
  { word[NR] = $0 }
  END {
    at = 2
    for (zones = word[1]; zones > 0; zones--) { print word[at++]; for (kinds = word[at++]; kinds > 0; kinds--) { at++; at += word[at] + 1 } }
  }')
lines=$(
  for name in $(printf '%s\n' "$default" "$active" | sort -u); do
    settings=$(ask '' getZoneSettings s "$name") || exit 1
    printf '%s\n' "$settings" | words | zone "$name" || exit 1
  done
) || exit 1
{
  echo "default zone $default"
  printf '%s\n' "$rules" | words | awk '
    { word[NR] = $0 }
    function quoted(text) {  # as a shell reads it, and as firewall-cmd prints it
      if (text ~ /^[A-Za-z0-9_@%+=:,.\/-]+$/) return text
      gsub(/\047/, "\047\"\047\"\047", text)
      return "\047" text "\047"
    }
    END {
      at = 2
      for (left = word[1]; left > 0; left--) {
        line = "direct rule"
        for (part = 0; part < 4; part++) line = line " " quoted(word[at++])  # family, table, chain, priority
        for (arguments = word[at++]; arguments > 0; arguments--) line = line " " quoted(word[at++])
        print line
      }
    }'
  printf '%s\n' "$lines"
} | sort -u
