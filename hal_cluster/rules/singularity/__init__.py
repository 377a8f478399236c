"""Role singularity at the controller: the ledger of slots, and what a singularity.conf may say."""
