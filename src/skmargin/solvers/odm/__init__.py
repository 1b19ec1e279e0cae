"""The optimal margin distribution machine (Zhang & Zhou 2017)."""
