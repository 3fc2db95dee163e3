"""The report: one HTML file that needs nothing else, from a finished fit (extra ``report``).

``render`` makes the page, ``write_report`` a file of it, and ``predictive_check`` compares the data with data that the
fitted model makes. Nothing in the page comes from elsewhere: styles and figures are inside, scripts are none, and its
content security policy lets a browser load nothing.

Here belongs how results look on a page: words, tables, figures. Nothing here judges, samples or reads a run's folder.
"""

from coreset_mcmc.report.content import Content
from coreset_mcmc.report.page import render, require_installed, write_report
from coreset_mcmc.report.predictive_check import PredictiveCheck, predictive_check

__all__ = ["Content", "PredictiveCheck", "predictive_check", "render", "require_installed", "write_report"]
