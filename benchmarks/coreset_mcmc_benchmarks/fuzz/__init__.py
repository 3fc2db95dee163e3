"""Random input on purpose: parsers and loaders, tables through the command line, models with a known posterior."""
