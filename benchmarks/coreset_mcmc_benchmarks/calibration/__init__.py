"""Simulation-based calibration of the whole pipeline: parameters from the prior, data from the parameters, ranks."""
