"""Benchmarks and the paper's experiments: what ``coreset-mcmc bench`` runs. The package itself never imports them."""
