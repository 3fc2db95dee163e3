"""Codes that compiled code returns, and what the driver tells the user about them."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Zero is well; anything else ends the run with an error."""

    OK = 0
    GRADIENT_NOT_FINITE = 1
    CHAIN_LOST = 2
    NO_WINDOW_TO_JUDGE = 3
    MODE_NOT_FOUND = 11
    HESSIAN_NOT_NEGATIVE_DEFINITE = 12
    DERIVATIVES_NOT_FINITE = 13
    PROJECTION_NOT_FINITE = 14
    STEP_SIZE_TOO_LARGE = 21

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
    Status.NO_WINDOW_TO_JUDGE: (
        "no weights could be judged: in every round some draws were impossible under rows of the data, or the chains "
        "never moved. Start well inside the support with initvals, make log_likelihood finite wherever the prior is, "
        "or use a larger coreset_size, which has room for more rows that bound the support."
    ),
    Status.MODE_NOT_FOUND: (
        "the search for the posterior mode did not converge. Allow more with max_iterations, start closer with "
        "initvals, or rescale the parameters so that they are of similar size."
    ),
    Status.HESSIAN_NOT_NEGATIVE_DEFINITE: (
        "the log-posterior has no peak where the search for its mode ended: it is flat or rises without end in some "
        "direction. Give every parameter a proper prior, drop parameters that the data cannot tell apart, or start "
        "elsewhere with initvals."
    ),
    Status.DERIVATIVES_NOT_FINITE: (
        "the gradient or the Hessian of the log-posterior is NaN or infinite at a position of finite density. Make "
        "log_prior and log_likelihood twice differentiable everywhere (see coreset_mcmc.models.special), or start "
        "elsewhere with initvals."
    ),
    Status.PROJECTION_NOT_FINITE: (
        "some row's log-likelihood is NaN or infinite at a draw of the Gaussian approximation of the posterior, so "
        "rows cannot be compared. Make log_likelihood stable at extreme positions (see coreset_mcmc.models.special), "
        "or reparametrise so that every real position is allowed."
    ),
    Status.STEP_SIZE_TOO_LARGE: (
        "a chain ran away: the log-posterior or its gradient is NaN or infinite where it arrived. Steps of this size "
        "are unstable; pass a smaller step_size. If they are small already, check that log_prior and log_likelihood "
        "have finite gradients everywhere."
    ),
}
