"""Bayesian coresets by Markov chain Monte Carlo."""
