"""What makes pages and pictures of the documentation; no part of the package."""
