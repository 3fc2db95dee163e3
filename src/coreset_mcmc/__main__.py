"""``python -m coreset_mcmc`` is the command ``coreset-mcmc``."""

from coreset_mcmc.commands.cli import app

app(prog_name="coreset-mcmc")
