"""Many parameters, or few rows for them: coresets with a Gaussian term, without one, and the term alone."""
