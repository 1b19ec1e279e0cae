"""The machine of all pairwise margins (Xu et al. 2017)."""
