# Prints why the daemon of a node must not be restarted now, nothing where it may: drained.sh NODE STATES. Slurm is asked of this node alone.
if ! command -v squeue >/dev/null; then
  # No Slurm yet, and no jobs; or nobody knows.
  if pgrep -x 'slurmd|slurmstepd' >/dev/null; then echo "slurmd runs, and squeue is not in PATH"; fi
  exit 0
fi
# First whether it is drained: no job begins after that.
if ! state=$(timeout 30 scontrol --oneliner show node "$1") || ! jobs=$(timeout 30 squeue --noheader --nodelist "$1" --states "$2" --format %A); then
  echo "Slurm does not say whether jobs run here"
elif [ -n "$jobs" ]; then
  echo "jobs $(echo "$jobs" | sort -u | paste -sd, - | sed 's/,/, /g') run here; drain the node first (playbooks/reboot.yml)"
elif ! echo "$state" | grep -q ' State=[^ ]*DRAIN'; then
  echo "the node is not drained in Slurm, and a job may begin at any time; drain it first (playbooks/reboot.yml)"
fi
