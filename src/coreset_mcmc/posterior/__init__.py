"""Model and rows together: the problem a method works on, its densities, the mode. No Markov chains, no training."""
