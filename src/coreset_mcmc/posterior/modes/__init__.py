"""Several modes: a population of starts, climbed together on few rows, ranked on all of them.

A search from one point finds the mode whose basin the point lies in, and so does every chain that starts there. Here
many starts are tried before any training:

* :mod:`~coreset_mcmc.posterior.modes.sample`: heights and climbs of many positions at once, on a few hundred rows;
* :mod:`~coreset_mcmc.posterior.modes.proposals`: where to look;
* :mod:`~coreset_mcmc.posterior.modes.search`: look, climb, look again from what was found;
* :mod:`~coreset_mcmc.posterior.modes.ranking`: which of the peaks of the sample are modes of all rows, and their mass;
* :mod:`~coreset_mcmc.posterior.modes.symmetry`: peaks that are copies of each other;
* :mod:`~coreset_mcmc.posterior.modes.found`: what is known in the end.
"""
