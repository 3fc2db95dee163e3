"""Models that users already have: one file for each library, which is imported only when it is used."""
