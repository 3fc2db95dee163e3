"""Real data: flights from New York City, and the tables of the paper's experiments."""

from coreset_mcmc.datasets.flights import FLIGHT_FEATURES, RegressionData, flight_cancellations, flights_with_weather
from coreset_mcmc.datasets.paper import bike_share_counts, paper_cancellations, paper_delays

__all__ = [
    "FLIGHT_FEATURES",
    "RegressionData",
    "bike_share_counts",
    "flight_cancellations",
    "flights_with_weather",
    "paper_cancellations",
    "paper_delays",
]
