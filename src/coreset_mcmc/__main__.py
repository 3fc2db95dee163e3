"""``python -m coreset_mcmc`` is the command ``coreset-mcmc``."""

from coreset_mcmc.cli import app

app(prog_name="coreset-mcmc")
