"""Kernels: Gram matrices, rows on demand, bases."""
