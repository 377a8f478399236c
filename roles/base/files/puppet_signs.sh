#!/bin/sh
# Prints one line for each sign that a Puppet agent manages this node; nothing when there is none.
# $1: a run that ended within this many hours counts. Read-only.
#
# "puppet agent --disable" leaves a lock that survives reboots and stops every run of the agent, whatever starts it: then the agent
# shows no sign. "puppet apply" does not look at that lock.
recent_minutes=$(( $1 * 60 ))

cron_files() {
  grep -lsE "$1" /etc/crontab /etc/cron.d/* /var/spool/cron/* | while read -r file; do echo "cron runs it: $file"; done
}

cron_files '^[^#]*puppet([[:space:]].*)?[[:space:]]apply'

for state in /opt/puppetlabs/puppet/cache/state /var/lib/puppet/state; do
  [ -e "$state/agent_disabled.lock" ] && exit 0
done

systemctl show --property=Id,ActiveState,UnitFileState puppet.service puppetagent.service pe-puppet.service | awk -F= '
  function told() {
    sub(/[.]service$/, "", value["Id"])
    if (value["ActiveState"] == "active") print "service " value["Id"] " is running"
    if (value["UnitFileState"] ~ /^enabled/) print "service " value["Id"] " starts at boot"
    split("", value)
  }
  /^$/ { told(); next }
  { value[$1] = $2 }
  END { told() }'

cron_files '^[^#]*puppet([[:space:]].*)?[[:space:]]agent|^[^#]*puppetd'

for state in /opt/puppetlabs/puppet/cache/state /var/lib/puppet/state; do
  [ -e "$state/agent_catalog_run.lock" ] && echo "a run is under way: $state/agent_catalog_run.lock"
  find "$state/last_run_summary.yaml" -mmin "-$recent_minutes" -printf 'it last ran at %TY-%Tm-%Td %TH:%TM: %p\n' 2>/dev/null
done
exit 0
