"""The terms that a reader who knows regression may not know, each in a sentence: for terminal, report and pages."""

from __future__ import annotations

WORDS = {
    "KL": "distance between two distributions, in nats; at k nats no mean is off by more than √(2k) sd",
    "nat": "the unit of KL, as a bit is with logarithms to base 2; 0.1 is little, 1 is much",
    "k-hat": "tail of the corrections that lead from the draws to all rows; above 0.7 the draws miss a part",
    "R-hat": "how far chains, or coresets, disagree; 1 if they do not",
    "ESS": "effective sample size, the number of independent draws that these are worth",
    "pass": "one evaluation of the log-likelihood of every row",
}
"""Sentences that fit after the word and a colon; ``docs/words.md`` has them, too."""


def explained(*terms: str) -> list[str]:
    """A line for each."""
    return [f"{term}: {WORDS[term]}" for term in terms]
