"""Running anything in steps: compiled chunks, progress, checkpoints, cost. It knows the steps, and no method."""
