"""The machine with a block norm (Lei et al. 2015)."""
