"""Models that users already have, one file or folder for each library, which is imported only when it is used; models
of our own and tests that every model goes through do not belong here."""
