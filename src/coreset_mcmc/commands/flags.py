"""Messages of the library in the words of the command line: options by their flags, methods by their names.

The library speaks to people who write Python. What reaches the terminal, the summary or the report of a run is said to
someone who has flags, and no object to call a method of.
"""

from __future__ import annotations

import re
from dataclasses import replace

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.verdict import Trust

PHRASES = (
    (r", or correct the draws with fit\.reweight\(\) or fit\.exact\(\)", ", or all rows with --method nuts"),
    (r", or fit\.exact\(\); fit\.reweight\(\) will do only while k-hat is below 0\.7", ", or --method nuts"),
    (r", or use fit\.exact\(\)", ", or use --method nuts"),
    (r"Use fit\.exact\(\), or a larger", "Use --method nuts, or a larger"),
    (r"try method=cm\.NUTS\(\)", "try --method nuts"),
    (r"method=cm\.NUTS\(\)", "--method nuts"),
    (r"Pass coreset_size to fit", "Pass --coreset-size"),
    (r"larger coreset_size \(twice the rows\)", "larger --coreset-size (twice the rows)"),
    (r"\bcoreset_size\b", "--coreset-size"),
    (r"\bkl_target\b", "--kl-target"),
    (r"\bdrop_missing=True\b", "--drop-missing"),
    (r"\brandom_seed\b", "--seed"),
    (r"\b(draws|tune|chains)=(\d+)", r"--\1 \2"),
    (r"Increase draws\b", "Increase --draws"),
    (r"Increase tune and draws", "Increase --tune and --draws"),
    (r"Use four chains, more tune and more draws", "Use --chains 4, and more of --tune and --draws"),
    (r"Keep more draws([,.:])", r"Keep more of them with --draws\1"),
    (r'to="(\w+)\.parquet"', r"--out \1.parquet"),
    (r", or use a kernel that mixes faster", ", or try --method nuts"),
    (r"\bmethod=cm\.LeastSquares\(gaussian_term=False\)", "--no-gaussian-term"),
    (r"\blump_rare=(\d+)", r"--lump-rare \1"),
    (r"\b(family|link|trials)='(\w+)'", r"--\1 \2"),
)
"""Patterns and what takes their place, in this order."""
SUBJECT = re.compile(r"^(weights|where|lump_rare|trials|family|link)\b")
"""What an error is about, if it is an option."""


def by_flags(text: str) -> str:
    """A message in the words of the command line."""
    for pattern, instead in PHRASES:
        text = re.sub(pattern, instead, text)
    return text


def error_by_flags(error: InputError) -> InputError:
    """The same error in the words of the command line."""
    subject = SUBJECT.sub(lambda found: f"--{found[1].replace('_', '-')}", by_flags(error.subject))
    return InputError(subject, got=by_flags(error.got), expected=by_flags(error.expected), fix=by_flags(error.fix))


def verdict_by_flags(trust: Trust) -> Trust:
    """The same verdict in the words of the command line."""
    return replace(
        trust,
        reason=by_flags(trust.reason),
        remedy=by_flags(trust.remedy),
        findings=tuple(
            replace(finding, text=by_flags(finding.text), remedy=by_flags(finding.remedy)) for finding in trust.findings
        ),
    )
