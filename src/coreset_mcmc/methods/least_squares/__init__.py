"""The default: weights by least squares on windows of draws, from the mode, with rows that matter.

``method`` holds the settings and says which step comes next; ``state`` is what steps carry and report.

- Before any weights are tried: ``search`` steps to the mode, and ``start`` says what is prepared there, rows by their
  ``influence`` and control variates (``taylor``), both drawn by ``row_sampling``.
- A round is in ``rounds``: draws (``drawing``) become ``equations`` for the weights, ``judgement`` says what they tell
  about the weights tried, and ``nonnegative`` solves for the next ones.
- Between rounds ``exchange`` replaces rows that got no weight.
"""

from coreset_mcmc.methods.least_squares.method import LeastSquares

__all__ = ["LeastSquares"]
