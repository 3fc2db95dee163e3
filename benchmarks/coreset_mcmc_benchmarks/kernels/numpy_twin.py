"""Coreset MCMC in plain NumPy, vectorised over rows: what the compiled iteration is compared with."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from coreset_mcmc.data import ArrayData
from coreset_mcmc.posterior.problem import Problem


@dataclass
class NumpyChain:
    """Two chains with the same kernels and update, for logistic and Poisson regression."""

    problem: Problem
    is_univariate: bool
    subsample_size: int | None
    is_poisson: bool

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(3)
        assert isinstance(self.problem.data, ArrayData)
        self.data = jax.tree.map(np.asarray, self.problem.data.arrays)
        self.rows = jax.tree.map(np.asarray, self.problem.rows)
        self.weights = np.asarray(self.problem.initial_weights).copy()
        self.beta = np.asarray(self.problem.initial_positions["beta"]).copy()

    def log_likelihood(self, beta: np.ndarray, rows: Any) -> np.ndarray:
        eta = beta[0] + rows["x"] @ beta[1:]
        if self.is_poisson:
            rate = np.logaddexp(0.0, eta)
            return np.asarray(rows["y"] * np.log(rate) - rate)
        return np.asarray(-np.logaddexp(0.0, (1.0 - 2.0 * rows["y"]) * eta))

    def log_density(self, beta: np.ndarray) -> float:
        prior = -0.5 * np.sum(beta**2) if self.is_poisson else -np.sum(np.log1p(beta**2))
        return float(prior + self.weights @ self.log_likelihood(beta, self.rows))

    def slice_along(self, beta: np.ndarray, direction: np.ndarray) -> np.ndarray:
        level = self.log_density(beta) - self.rng.exponential()
        left = -10.0 * self.rng.random()
        right = left + 10.0
        for end in (left, right):  # doubling is never needed at this width, but its ends are evaluated
            self.log_density(beta + end * direction)
        while True:
            distance = left + (right - left) * self.rng.random()
            if self.log_density(beta + distance * direction) > level:
                return beta + distance * direction
            left, right = (distance, right) if distance < 0 else (left, distance)

    def step(self) -> None:
        dimension = self.beta.shape[1]
        for chain in range(len(self.beta)):
            if self.is_univariate:
                directions = np.eye(dimension)
            else:
                noise = self.rng.normal(size=(1, dimension))
                directions = noise / np.linalg.norm(noise)
            for direction in directions:
                self.beta[chain] = self.slice_along(self.beta[chain], direction)
        size = self.data["y"].size
        if self.subsample_size is None:
            batch, scale = self.data, 1.0
        else:
            chosen = self.rng.choice(size, self.subsample_size, replace=False)
            batch, scale = jax.tree.map(lambda leaf: leaf[chosen], self.data), size / self.subsample_size
        coreset = self.log_likelihood(self.beta[0], self.rows) - self.log_likelihood(self.beta[1], self.rows)
        total = scale * np.sum(self.log_likelihood(self.beta[0], batch) - self.log_likelihood(self.beta[1], batch))
        gradient = 0.5 * coreset * (coreset @ self.weights - total)
        self.weights = np.maximum(self.weights - 1e-4 * np.sign(gradient), 0.0)

    def seconds(self, steps: int) -> float:
        self.step()
        began = time.perf_counter()
        for _ in range(steps):
            self.step()
        return (time.perf_counter() - began) / steps
