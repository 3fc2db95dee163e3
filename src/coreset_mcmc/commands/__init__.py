"""What the command line does with tables: fit, resume, report, compare. A run is a folder."""
