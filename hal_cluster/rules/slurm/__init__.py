"""What a site sets of Slurm: as its files have it, as its release takes it, and as slurmctld has to show it."""
