"""Engines on clusters: who passes over the rows when one machine is too few."""
