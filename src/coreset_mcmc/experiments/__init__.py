"""The experiments of the paper: what ``coreset-mcmc bench paper`` runs and draws."""
