"""Log-likelihoods in NumPy, SciPy or plain Python: how long a fit takes, and whether its posterior is right."""
