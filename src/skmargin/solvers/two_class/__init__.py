"""Two-class machines and what joins them: ULDM, LDM, LS-SVM (Abe 2017)."""
