# Prints the jobs of this node: jobs.sh NODE STATES. Status 127: there is no Slurm here yet; any other but 0: nobody knows.
if ! command -v squeue >/dev/null; then
  if pgrep -x 'slurmd|slurmstepd' >/dev/null; then
    echo "slurmd runs, and squeue is not in PATH" >&2
    exit 1
  fi
  exit 127
fi
exec timeout 30 squeue --noheader --nodelist "$1" --states "$2" --format %A
