"""What a fit leaves behind and what can be done with it. Nothing here trains, and nothing judges."""
