"""What tests of scenarios share."""
