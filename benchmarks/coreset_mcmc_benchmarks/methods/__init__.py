"""Every method on every model that admits it: cases, measurements, and the page made from their table."""
