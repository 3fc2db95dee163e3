"""More rows than memory: time, passes and memory of fits on Parquet files, in memory and on a local cluster."""
