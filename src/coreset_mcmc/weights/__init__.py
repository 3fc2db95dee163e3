"""Moving the weights: gradient estimates, feasible sets, optimisers, when to start and when to stop."""
