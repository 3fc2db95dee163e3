"""Faults on purpose: runs that are killed, interrupted, starved, damaged or doubled, and what they leave."""
