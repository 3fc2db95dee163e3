"""Numbers about draws: distances between sets of draws, mixing of chains. Levels and advice are the verdict's."""
