"""The authors' own results: two-moment KL in nats, from their published result files."""

from __future__ import annotations

from typing import NamedTuple


class Authors(NamedTuple):
    """Of ten runs."""

    median: float
    smallest: float | None = None
    largest: float | None = None
    remark: str = ""

    @property
    def in_words(self) -> str:
        spread = f" ({self.smallest:.3g} to {self.largest:.3g})" if self.smallest is not None else ""
        return f"{self.median:.3g}{spread}{self.remark}"


MEDIAN_KL: dict[tuple[str, str, int | None], Authors] = {
    ("sparse-hamiltonian-flow", "poisson", 50): Authors(1_749, 1_330, 6_257),
    ("sparse-hamiltonian-flow", "poisson", 500): Authors(1_014, 627, 1_870),
    ("sparse-hamiltonian-flow", "linear", 500): Authors(680),
    ("sparse-hamiltonian-flow", "logistic", 500): Authors(48),
    ("quasi-newton", "poisson", 500): Authors(80, 0.26, 7.6e5),
    ("quasi-newton", "linear", 500): Authors(22),
    ("quasi-newton", "logistic", 500): Authors(175, 1.3, 570, "; 2 of 10 NaN"),
    ("uniform", "poisson", 500): Authors(21_887),
    ("uniform", "linear", 500): Authors(3_201),
    ("uniform", "logistic", 500): Authors(33_066),
    ("austerity-mh", "poisson", None): Authors(504, 453, 549),
    ("austerity-mh", "linear", None): Authors(3_330),
    ("austerity-mh", "logistic", None): Authors(1_052),
    ("confidence-mh", "poisson", None): Authors(140, 126, 148),
    ("confidence-mh", "linear", None): Authors(180),
    ("confidence-mh", "logistic", None): Authors(1.4),
    ("sgld-cv", "poisson", None): Authors(8_250, 3_949, 12_660),
    ("sgld-cv", "linear", None): Authors(60),
    ("sgld-cv", "logistic", None): Authors(10),
    ("sghmc-cv", "poisson", None): Authors(1_089, 323, 2_221),
    ("sghmc-cv", "linear", None): Authors(0.79),
    ("sghmc-cv", "logistic", None): Authors(0.64),
}
"""By method, experiment and coreset size."""

MEAN_KL: dict[str, dict[str, dict[int, float]]] = {
    "linear": {
        "coreset-mcmc": {10: 1.36e6, 20: 6.76e4, 50: 5461, 100: 1074, 200: 832, 500: 14.5},
        "coreset-mcmc-s-published": {10: 5.76e5, 20: 6.60e4, 50: 5453, 100: 1838, 200: 1246, 500: 552},
    },
    "logistic": {
        "coreset-mcmc": {10: 6.97e13, 20: 6.66e5, 50: 893, 100: 653, 200: 297, 500: 4.29},
        "coreset-mcmc-s-published": {10: 6.97e13, 20: 4.20e5, 50: 1087, 100: 605, 200: 182, 500: 11.4},
    },
    "poisson": {
        "coreset-mcmc": {10: 1.29e6, 20: 4.62e4, 50: 4794, 100: 20.2, 200: 5.17, 500: 1.89},
        "coreset-mcmc-s-published": {10: 1.17e6, 20: 5.22e4, 50: 8899, 100: 860, 200: 490, 500: 162},
    },
    "sparse": {
        "coreset-mcmc": {10: 1.25e6, 20: 2.44e4, 50: 369, 100: 50.0, 200: 0.173, 500: 0.052},
        "coreset-mcmc-s-published": {10: 2.72e4, 20: 8801, 50: 428, 100: 69.3, 200: 10.1, 500: 2.67},
    },
}
"""Means over ten runs at the chosen step sizes (the median for sparse, all rows)."""
