"""The experiments of the paper: cases, settings, references, jobs, workers, table, figures."""
