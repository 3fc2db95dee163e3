"""Ours against its peers, each cold in a process of its own: what ``coreset-mcmc bench speed`` runs and draws."""
