"""How often the verdict of ``fit.trust()`` is right: problems with known posteriors, measurements, and their page."""
