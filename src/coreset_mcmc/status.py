"""Codes that compiled code returns, and what the driver tells the user about them."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Zero is well; anything else ends the run with an error."""

    OK = 0
    GRADIENT_NOT_FINITE = 1
    CHAIN_LOST = 2

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: "all is well",
    Status.GRADIENT_NOT_FINITE: (
        "the gradient estimate is NaN or infinite: some row's log-likelihood is not finite at a chain's position. "
        "Make log_likelihood stable at extreme positions (see coreset_mcmc.models.special), or start closer with "
        "initvals, or hold the weights longer with burn_in."
    ),
    Status.CHAIN_LOST: (
        "a chain reached a position of zero posterior density and cannot return. "
        "Check that log_prior and log_likelihood are finite wherever the kernel can go."
    ),
}
