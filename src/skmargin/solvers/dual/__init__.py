"""Machines with a hinge loss and the squared norm, in the dual: Crammer-Singer, Weston-Watkins, top-k."""
