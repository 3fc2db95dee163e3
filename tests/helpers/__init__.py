"""What several tests share: small problems, models, checks of kernels, pages. No tests here."""
