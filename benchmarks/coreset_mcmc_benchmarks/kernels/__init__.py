"""What a step costs: slice kernels beside BlackJAX's, and an iteration beside its bare log-likelihoods."""
