"""A catalogue of models of NumPyro, PyMC and Bambi, on simulated rows: what converts, and how exactly."""
