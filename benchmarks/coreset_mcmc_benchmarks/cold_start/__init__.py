"""What a fit costs in a process that has just begun, and what of it is left the second time."""
