"""Smooth problems in the primal: the machine of the minimum margin (Nie et al. 2024)."""
