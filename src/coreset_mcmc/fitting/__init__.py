"""The front door ``fit``: from a model and data to a result. It steers methods; how they work is not here."""
