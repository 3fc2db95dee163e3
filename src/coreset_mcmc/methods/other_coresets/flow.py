"""The variational family of sparse Hamiltonian flows (Chen, Xu and Campbell 2022, "Bayesian inference via sparse
Hamiltonian flows").

A draw starts at theta ~ q_0 = N(location, scale^2), r ~ N(0, I), and passes R times through L leapfrog steps on the
coreset log-density U_w followed by a *quasi-refreshment* of the momentum:

    leapfrog      r += eps/2 grad U_w(theta),  theta += eps r,  r += eps/2 grad U_w(theta)
    refreshment   r <- (r - mu_j) / s_j

Leapfrog steps preserve volume, so the log-determinant of the whole map is -sum_j sum_i log s_ji. The gradient at the
end of a step is the one that the next step begins with, and a refreshment leaves theta alone: a draw costs R L + 1
gradients. Everything works on the flattened position; d is its length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm

from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget


class FlowParameters(NamedTuple):
    """All that is trained, M + d + 2 R d numbers."""

    log_weights: jax.Array
    """(M,)"""
    log_step_sizes: jax.Array
    """(d,), the same for all leapfrog steps."""
    means: jax.Array
    """mu (R, d)"""
    log_scales: jax.Array
    """log s (R, d)"""


class PhasePoint(NamedTuple):
    """A flattened position with its momentum, and the coreset log-density and its gradient there."""

    position: jax.Array
    momentum: jax.Array
    log_density: jax.Array
    gradient: jax.Array


class Refreshment(NamedTuple):
    """One quasi-refreshment: mu and log s (d,)."""

    mean: jax.Array
    log_scale: jax.Array


def spread(value: Any, position: Position) -> jax.Array:
    """A number, or one for each part of ``position``, as a vector with an entry for each flattened coordinate."""
    filled = jax.tree.map(
        lambda leaf, part: jnp.broadcast_to(jnp.asarray(part, leaf.dtype), leaf.shape),
        position,
        jax.tree.broadcast(value, position),
    )
    return ravel_pytree(filled)[0]


def log_determinant(parameters: FlowParameters) -> jax.Array:
    """Of the Jacobian of the whole map from start to end."""
    return -jnp.sum(parameters.log_scales)


def refresh(point: PhasePoint, refreshment: Refreshment) -> PhasePoint:
    """Shift and rescale the momentum; scales are standard deviations."""
    return point._replace(momentum=(point.momentum - refreshment.mean) * jnp.exp(-refreshment.log_scale))


@pytree
@dataclass(frozen=True)
class SparseFlow:
    """The map, with everything that training does not move.

    Args:
        rows: of the coreset.
        position: any position, for its structure.
        location, scale: (d,) of the starting distribution q_0.
        num_leapfrog: L.
    """

    rows: Batch
    position: Position
    location: jax.Array
    scale: jax.Array
    model: Model = static()
    num_leapfrog: int = static()

    def unflatten(self, vector: jax.Array) -> Position:
        return ravel_pytree(self.position)[1](vector)

    def target(self, parameters: FlowParameters) -> CoresetTarget:
        return CoresetTarget(self.rows, jnp.exp(parameters.log_weights), self.model)

    def start(self, key: Key) -> tuple[jax.Array, jax.Array]:
        """A position from q_0 and a standard normal momentum."""
        normals = jax.random.normal(key, (2, *self.location.shape), self.location.dtype)
        return self.location + self.scale * normals[0], normals[1]

    def push(self, parameters: FlowParameters, position: jax.Array, momentum: jax.Array) -> PhasePoint:
        """The whole map. A scan within a scan keeps the compiled program as small as one leapfrog step."""

        def pass_once(point: PhasePoint, refreshment: Refreshment) -> tuple[PhasePoint, None]:
            return refresh(self.leapfrog(target, step_sizes, point), refreshment), None

        target, step_sizes = self.target(parameters), jnp.exp(parameters.log_step_sizes)
        refreshments = Refreshment(parameters.means, parameters.log_scales)
        return jax.lax.scan(pass_once, self.evaluate(target, position, momentum), refreshments)[0]

    def evaluate(self, target: CoresetTarget, position: jax.Array, momentum: jax.Array) -> PhasePoint:
        value, gradient = jax.value_and_grad(lambda vector: target.log_density(self.unflatten(vector)))(position)
        return PhasePoint(position, momentum, value, gradient)

    def leapfrog(self, target: CoresetTarget, step_sizes: jax.Array, point: PhasePoint) -> PhasePoint:
        """L steps with one gradient each."""

        # Reverse mode recomputes a step instead of storing what each row contributed to it: less memory, more speed.
        @jax.checkpoint
        def one_step(point: PhasePoint, _: None) -> tuple[PhasePoint, None]:
            momentum = point.momentum + 0.5 * step_sizes * point.gradient
            moved = self.evaluate(target, point.position + step_sizes * momentum, momentum)
            return moved._replace(momentum=momentum + 0.5 * step_sizes * moved.gradient), None

        return jax.lax.scan(one_step, point, None, length=self.num_leapfrog)[0]

    def warm_start(self, key: Key, parameters: FlowParameters, num_particles: int, *, power: int = 1) -> FlowParameters:
        """Refreshments that leave the momenta of particles sent through the flow with mean 0 and standard deviation 1.

        Each is set when the particles reach it, and applied to them before they go on. Momenta are divided by the
        ``power`` of their standard deviation, of which only the first makes it 1.
        """
        target, step_sizes = self.target(parameters), jnp.exp(parameters.log_step_sizes)
        positions, momenta = jax.vmap(self.start)(jax.random.split(key, num_particles))
        points = jax.vmap(lambda position, momentum: self.evaluate(target, position, momentum))(positions, momenta)

        def pass_once(points: PhasePoint, _: None) -> tuple[PhasePoint, Refreshment]:
            points = jax.vmap(lambda point: self.leapfrog(target, step_sizes, point))(points)
            refreshment = fitted_refreshment(points.momentum, power)
            return refresh(points, refreshment), refreshment

        fitted = jax.lax.scan(pass_once, points, None, length=parameters.means.shape[0])[1]
        return parameters._replace(means=fitted.mean, log_scales=fitted.log_scale)

    def elbo(
        self, parameters: FlowParameters, position: jax.Array, momentum: jax.Array, batch: Batch, size: int
    ) -> jax.Array:
        """An estimate of the evidence lower bound from one start and a uniform minibatch of ``size`` rows.

        Unbiased, up to the constants that log-prior and log-likelihood leave out. The normalisers of the two momenta
        cancel.
        """
        end = self.push(parameters, position, momentum)
        at = self.unflatten(end.position)
        log_likelihoods = self.model.log_likelihood(at, batch)
        log_joint = self.model.log_prior(at) + size * jnp.mean(log_likelihoods) - 0.5 * jnp.sum(end.momentum**2)
        log_start = jnp.sum(norm.logpdf(position, self.location, self.scale)) - 0.5 * jnp.sum(momentum**2)
        return log_joint - (log_start - log_determinant(parameters))


def fitted_refreshment(momenta: jax.Array, power: int) -> Refreshment:
    """Mean and ``power`` of the standard deviation of momenta (P, d) over the particles."""
    return Refreshment(jnp.mean(momenta, axis=0), power * jnp.log(jnp.std(momenta, axis=0)))
