"""Models of Bambi's gallery, typed anew in their smallest form, on data of any size drawn from them.

Sources: the Bambi examples "Robust linear regression", "Logistic regression" (ANES), "Negative binomial regression"
(absences of students), "Multiple linear regression" (personality and drug use) and "Multi-level regression" (sleep
study).
"""

from __future__ import annotations

import bambi as bmb
import numpy as np
import pandas as pd


def robust(size: int) -> bmb.Model:
    """Student-t errors."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=size)
    data = pd.DataFrame({"x": x, "y": 1 + 2 * x + 0.5 * rng.standard_t(4, size=size)})
    return bmb.Model("y ~ x", data, family="t")


def election(size: int) -> bmb.Model:
    """A categorical predictor and its interaction."""
    rng = np.random.default_rng(2)
    party = rng.choice(["democrat", "independent", "republican"], size=size)
    age = rng.uniform(18, 90, size=size)
    eta = np.select([party == "democrat", party == "republican"], [2.0, -2.0], 0.3) - 0.01 * (age - 50)
    vote = np.where(rng.uniform(size=size) < 1 / (1 + np.exp(-eta)), "clinton", "trump")
    data = pd.DataFrame({"vote": vote, "party_id": party, "age": age})
    return bmb.Model("vote['clinton'] ~ party_id + party_id:age", data, family="bernoulli")


def absences(size: int) -> bmb.Model:
    """A negative binomial without intercept, and a scaled predictor."""
    rng = np.random.default_rng(3)
    program = rng.choice(["General", "Academic", "Vocational"], size=size)
    math = rng.uniform(1, 99, size=size)
    rate = np.exp(np.select([program == "General", program == "Academic"], [2.3, 1.9], 1.0) - 0.15 * (math - 50) / 28)
    data = pd.DataFrame({"prog": program, "math": math, "daysabs": rng.negative_binomial(2, 2 / (2 + rate))})
    return bmb.Model("daysabs ~ 0 + prog + scale(math)", data, family="negativebinomial")


def personality(size: int) -> bmb.Model:
    """Five predictors."""
    rng = np.random.default_rng(5)
    traits = {name: rng.normal(100, 20, size=size) for name in "ocean"}
    drugs = 2.0 + 0.004 * traits["o"] - 0.002 * traits["c"] + 0.003 * traits["n"] + 0.6 * rng.normal(size=size)
    return bmb.Model("drugs ~ o + c + e + a + n", pd.DataFrame({"drugs": drugs, **traits}))


def sleepstudy(size: int, *, noncentered: bool = True) -> bmb.Model:
    """Varying intercepts and slopes."""
    rng = np.random.default_rng(4)
    subject, days = rng.integers(6, size=size), rng.integers(10, size=size)
    level, slope = rng.normal(250, 20, size=6), rng.normal(10, 5, size=6)
    data = pd.DataFrame(
        {
            "Reaction": level[subject] + slope[subject] * days + rng.normal(scale=25, size=size),
            "Days": days,
            "Subject": subject.astype(str),
        }
    )
    return bmb.Model("Reaction ~ 1 + Days + (Days | Subject)", data, categorical="Subject", noncentered=noncentered)


MODELS = {
    "absences": absences,
    "election": election,
    "personality": personality,
    "robust": robust,
    "sleepstudy": sleepstudy,
}
