"""`make demo`, and the small virtual HAL beside it."""
