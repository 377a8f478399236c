#!/bin/sh
# Prints why the GPU driver of node $1 must not be touched now, a line for each reason; nothing where it may be. $2 are Slurm's states of a job that is
# on a node. Read-only.
leave='systemctl stop slurmd there takes the node out of Slurm, too'

# --- jobs: first whether it is drained, since no job begins after that. Without slurmd none begins at all ---
if pgrep -x 'slurmd|slurmstepd' >/dev/null; then
  if ! state=$(timeout 30 scontrol --oneliner show node "$1") || ! jobs=$(timeout 30 squeue --noheader --nodelist "$1" --states "$2" --format %A); then
    echo "slurmd runs, and Slurm does not say whether jobs run here ($leave)"
  elif [ -n "$jobs" ]; then
    echo "jobs $(echo "$jobs" | sort -u | paste -sd, - | sed 's/,/, /g' | cut -c 1-100) run here"
  elif ! echo "$state" | grep -q ' State=[^ ]*DRAIN'; then
    echo "the node is not drained in Slurm, and a job may begin at any time"
  fi
fi 2>/dev/null

# --- processes on the GPUs ---
# Without an answer of nvidia-smi (15: a GPU is lost, the others answer): whoever has a GPU open, the daemon that holds them aside.
said=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null)
case $? in
  0 | 15) pids=$(echo "$said" | grep '^[0-9]') ;;
  *) pids=$(find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null | sed 's|.*/\([0-9]*\)/fd/.*|\1|') ;;
esac
for pid in $(echo "$pids" | sort -un); do
  name=$(tr -dc '[:print:]' 2>/dev/null <"/proc/$pid/comm") || continue # it has ended
  [ "$name" = nvidia-persiste ] || echo "process $pid ($name) uses a GPU"
done | awk 'NR <= 5; END { if (NR > 5) print NR - 5 " more processes use GPUs" }'
