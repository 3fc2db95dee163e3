"""The method that a configuration asks for."""

from __future__ import annotations

from coreset_mcmc.commands.config import Config
from coreset_mcmc.core.errors import require
from coreset_mcmc.methods.contract import Method
from coreset_mcmc.methods.registry import DEFAULT_METHOD, METHODS


def check_method(config: Config) -> None:
    """Refuse one that is not there, or that does not know what else is asked for."""
    require(
        config.coreset.method in METHODS,
        f"--method {config.coreset.method}",
        got=repr(config.coreset.method),
        expected=f"one of {', '.join(METHODS)}",
        fix="'coreset-mcmc list' says what each is; leave it out for the default.",
    )
    require(
        config.coreset.size is None or METHODS[config.coreset.method].uses_coreset_rows,
        f"--coreset-size {config.coreset.size}",
        got=f"the method {config.coreset.method}, which has no coreset",
        expected="a method that chooses rows",
        fix="Leave --coreset-size out, or choose another --method.",
    )
    require(
        config.coreset.gaussian_term is None or config.coreset.method == DEFAULT_METHOD.name,
        "--gaussian-term",
        got=f"the method {config.coreset.method}",
        expected=f"the method {DEFAULT_METHOD.name}, the only one that knows such a term",
        fix="Leave out one of --method and --gaussian-term.",
    )


def method_of(config: Config) -> Method:
    """As it is asked for."""
    term, make = config.coreset.gaussian_term, METHODS[config.coreset.method]
    return make() if term is None else DEFAULT_METHOD(gaussian_term=term)
