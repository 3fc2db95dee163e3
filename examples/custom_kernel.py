"""A Markov kernel of one's own: random walk steps with heavy tails, beside the default, on the same coreset problem.

python examples/custom_kernel.py [--quick] [--rows 50000] [--output custom_kernel.png]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import arviz_stats
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from jax.flatten_util import ravel_pytree

import coreset_mcmc as cm
from coreset_mcmc import extend

matplotlib.use("agg")
from matplotlib import pyplot


@extend.pytree
@dataclass(frozen=True)
class HeavyTailedWalk(extend.Kernel):
    """Propose theta + scale * Cauchy noise, accept by Metropolis: mostly small steps, now and then a long one.

    A kernel that caches more than the log-density would have an ``init`` of its own, which is called again whenever the
    weights have moved; one that moves discrete positions would have its own ``check``.
    """

    scale: float = 0.01

    def step(self, key, state, target):
        """One move that leaves the target invariant."""
        noise_key, accept_key = jax.random.split(key)
        flat, unravel = ravel_pytree(state.position)
        proposal = unravel(flat + self.scale * jax.random.cauchy(noise_key, flat.shape, flat.dtype))
        log_density = target.log_density(proposal)
        is_accepted = jnp.log(jax.random.uniform(accept_key, dtype=flat.dtype)) < log_density - state.log_density
        moved = jax.tree.map(
            lambda new, old: jnp.where(is_accepted, new, old), extend.KernelState(proposal, log_density), state
        )
        info = extend.KernelInfo(is_accepted.astype(flat.dtype), jnp.ones((), jnp.int32), jnp.array(False))
        return moved, info


def main(arguments: list[str] | None = None) -> None:
    """Fit with both kernels, print effective sizes, plot traces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--output", default="custom_kernel.png")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    num_rows = 2_000 if options.quick else options.rows
    x = rng.normal(size=(num_rows, 2))
    data = {"x": x, "y": rng.poisson(np.logaddexp(0.0, 1.0 + 0.5 * x[:, 0] - 0.3 * x[:, 1])).astype(float)}

    settings = {
        "coreset_size": 50 if options.quick else 200,
        "draws": 200 if options.quick else 2000,
        "chains": 2,
        "random_seed": 0,
        "progressbar": not options.quick,
    }
    scale = 1.0 / np.sqrt(num_rows)
    kernels = {"default (slice)": None, "heavy-tailed walk": HeavyTailedWalk(scale)}
    figure, panels = pyplot.subplots(len(kernels), 1, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
    for panel, (name, kernel) in zip(panels, kernels.items(), strict=True):
        fit = cm.fit(cm.models.poisson_regression(2), data, kernel=kernel, **settings)
        effective = arviz_stats.ess(fit.tree, var_names=["beta"])["beta"].to_numpy()
        print(f"{name}: {fit}")
        print(fit.summary().to_string())
        panel.plot(fit.posterior["beta"].to_numpy()[:, :, 0].T, linewidth=0.6)
        panel.set_title(f"{name}: smallest effective sample size {effective.min():.0f}", loc="left")
        panel.set_ylabel("beta[0]")
    panels[-1].set_xlabel("draw")
    figure.savefig(options.output, dpi=120)
    print("saved", options.output)


if __name__ == "__main__":
    main()
