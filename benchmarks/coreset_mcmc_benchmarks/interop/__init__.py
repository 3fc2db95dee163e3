"""Models of other libraries on coresets, against those libraries' own samplers on all rows."""
