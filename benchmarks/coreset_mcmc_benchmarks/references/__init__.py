"""Reference draws of full posteriors that a Gaussian at the mode does not describe: problems, sampling, checks."""
