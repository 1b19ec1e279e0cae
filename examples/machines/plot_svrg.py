"""
Stochastic gradients against the exact solver
=============================================

Figure 2 of Xu et al. (2017): with variance reduction (SVRG) the distance to the optimum falls, while that of plain
stochastic gradients stalls. The optimum is known here, since the exact solver of :class:`~skmargin.MultiMarginSVC`
certifies it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler

from skmargin import MultiMarginSVC

EPOCHS = 60
figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for panel, load in zip(panels, (load_iris, load_wine, load_digits), strict=True):
    X, y = load(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    exact = MultiMarginSVC(tol=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many epochs are drawn
        svrg = MultiMarginSVC(solver="svrg", max_iter=EPOCHS, tol=1e-6, random_state=0).fit(X, y)
    trajectory = np.asarray(svrg.trajectory_) / exact.objective_ - 1
    panel.semilogy(trajectory, label="SVRG")
    panel.axhline(1e-6, color="grey", linestyle=":", label="exact solver, certified")
    panel.set(title=load.__name__.removeprefix("load_"), xlabel="epoch")
    print(f"{panel.get_title()}: SVRG ends {trajectory[-1]:.1e} above the optimum after {svrg.n_iter_} epochs")
panels[0].set_ylabel("relative distance to the optimum")
panels[2].legend()
plt.show()
