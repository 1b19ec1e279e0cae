"""The core under former names, with positional arguments: callers move to ``_ext`` one by one."""

from __future__ import annotations

from typing import Any

from skmargin._core import _ext as core  # type: ignore[attr-defined, unused-ignore]


def __getattr__(name: str) -> Any:
    return getattr(core, name)


def _point(out: Any) -> dict[str, Any]:
    names = {"primal": "objective", "passes": "n_iter"}
    kept = ("W", "b", "multipliers", "duals", "primal", "gap", "passes", "work", "converged")
    return {name: getattr(out, names.get(name, name)) for name in kept}


def dense_blocks(X: Any, *args: Any) -> Any:
    return _blocks(core.Rows(X), *args)


def csr_blocks(indptr: Any, indices: Any, values: Any, d: int, *args: Any) -> Any:
    return _blocks(core.Rows(indptr, indices, values, d), *args)


def _blocks(
    rows: Any, y: Any, cap: Any, k: int, loss: str, top_k: int, mean: Any, intercept: bool, b: Any, start: Any,
    rivals: Any, alpha: Any, tol: float, passes: int, work: float, near_work: float, stall: bool, face: bool,
    settled: bool, seed: int, threads: int,
) -> Any:  # fmt: skip
    options = core.Options(
        tol=tol, max_iter=passes, max_work=work, work_when_near=near_work, stop_on_stall=stall, face_steps=face,
        near_optimum=settled, seed=seed, threads=threads,
    )  # fmt: skip
    problem = core.Problem(y, cap, k, loss, top_k=top_k)
    duals = start, rivals, alpha
    return _point(core.block_ascent(rows, problem, options, b=b, duals=duals, mean=mean, fit_intercept=intercept))


def dense_band(X: Any, *args: Any) -> Any:
    return _band(core.Rows(X), *args)


def csr_band(indptr: Any, indices: Any, values: Any, d: int, *args: Any) -> Any:
    return _band(core.Rows(indptr, indices, values, d), *args)


def _band(
    rows: Any, y: Any, cap: Any, k: int, mu: float, theta: float, rivals: Any, mean: Any, b: Any, start: Any, cls: Any,
    alpha: Any, tol: float, passes: int, work: float, stall: bool, share: float, reference: float, seed: int,
) -> Any:  # fmt: skip
    options = core.Options(
        tol=tol, max_iter=passes, max_work=work, stop_on_stall=stall, majorizer_share=share, majorizer_value=reference,
        seed=seed,
    )  # fmt: skip
    problem = core.Problem(y, cap, k, "odm", mu=mu, theta=theta, fixed_rivals=rivals)
    return _point(
        core.block_ascent(rows, problem, options, b=b, duals=(start, cls, alpha), mean=mean, fit_intercept=True)
    )


def lp_dense(X: Any, *args: Any) -> Any:
    return _lp(core.Rows(X), *args)


def lp_csr(indptr: Any, indices: Any, values: Any, d: int, *args: Any) -> Any:
    return _lp(core.Rows(indptr, indices, values, d), *args)


def lp_gram(K: Any, *args: Any) -> Any:
    return _lp(core.KernelMatrix(K), *args)


def lp_rows(rows: Any, diagonal: Any, *args: Any) -> Any:
    return _lp(core.KernelMatrix(rows, diagonal), *args)


def _lp(
    rows: Any, y: Any, cap: Any, k: int, q: float, mean: Any, intercept: bool, b: Any, start: Any, cls: Any, alpha: Any,
    tol: float, passes: int, stall: bool, face: bool, seed: int,
) -> Any:  # fmt: skip
    options = core.Options(tol=tol, max_iter=passes, stop_on_stall=stall, face_steps=face, seed=seed)
    problem, duals = core.Problem(y, cap, k, "max"), (start, cls, alpha)
    return _point(
        core.block_norm_ascent(rows, problem, options, q=q, b=b, duals=duals, mean=mean, fit_intercept=intercept)
    )


def _newton(out: Any) -> dict[str, Any]:
    indptr, rivals, alpha = out.duals
    return {
        "objective": out.objective, "gap": out.gap, "n_newton": out.n_iter, "converged": out.converged, "W": out.W,
        "b": out.b, "indptr": indptr, "classes": rivals, "alpha": alpha,
    }  # fmt: skip


def newton(
    X: Any, y: Any, cap: Any, n_classes: int, loss: str, K: int, fit_intercept: bool, tol: float, max_newton: int,
    state: Any, b: Any, seed: int,
) -> Any:  # fmt: skip
    options = core.Options(tol=tol, max_iter=max_newton, seed=seed)
    problem = core.Problem(y, cap, n_classes, loss, top_k=K)
    return _newton(core.newton(X, problem, options, b=b, duals=state, fit_intercept=fit_intercept))


def newton_band(
    X: Any, y: Any, cap: Any, k: int, mu: float, theta: float, rival: Any, fit_intercept: bool, tol: float,
    share: float, reference: float, max_newton: int, state: Any, b: Any, seed: int, of_duals: bool,
) -> Any:  # fmt: skip
    options = core.Options(
        tol=tol, max_iter=max_newton, majorizer_share=share, majorizer_value=reference, seed=seed
    )  # fmt: skip
    problem = core.Problem(y, cap, k, "odm", mu=mu, theta=theta, fixed_rivals=rival)
    return _newton(
        core.newton(X, problem, options, b=b, duals=state, fit_intercept=fit_intercept, publish_duals=of_duals)
    )


def dense_paper(X: Any, *args: Any) -> Any:
    return _paper(core.Rows(X), *args)


def csr_paper(indptr: Any, indices: Any, values: Any, d: int, *args: Any) -> Any:
    return _paper(core.Rows(indptr, indices, values, d), *args)


def _paper(
    rows: Any, y: Any, cap: Any, k: int, mu: float, theta: float, frozen: Any, zeta: Any, beta: Any, tol: float,
    passes: int, seed: int,
) -> Any:  # fmt: skip
    problem = core.Problem(y, cap, k, "odm", mu=mu, theta=theta)
    options = core.Options(tol=tol, max_iter=passes, seed=seed)
    out = core.published_odm(rows, problem, options, frozen_scores=frozen, zeta=zeta, beta=beta)
    return out | {"primal": out["objective"], "passes": out["n_iter"]}


def kernel_paper(
    matrix: Any, samples: Any, slot: Any, diagonal: Any, F: Any, y: Any, cap: Any, mu: float, theta: float, frozen: Any,
    zeta: Any, beta: Any,
) -> Any:  # fmt: skip
    problem = core.Problem(y, cap, len(F), "odm", mu=mu, theta=theta)
    return core.kernel_published_odm(
        matrix, samples, slot, diagonal, F, problem, frozen_scores=frozen, zeta=zeta, beta=beta
    )


def band_block(*args: Any) -> Any:
    return core.odm_block(*args)


def gram_box(K: Any, *args: Any) -> Any:
    return _box(K, *args)


def dense_box(X: Any, *args: Any) -> Any:
    return _box(core.Rows(X), *args)


def csr_box(indptr: Any, indices: Any, values: Any, d: int, *args: Any) -> Any:
    return _box(core.Rows(indptr, indices, values, d), *args)


def _box(
    rows: Any, y: Any, cap: Any, lin: Any, kappa: Any, start: Any, tol: float, passes: int, seed: int
) -> Any:  # fmt: skip
    options = core.Options(tol=tol, max_iter=passes, seed=seed)
    out = core.box_ascent(rows, y, cap, lin, kappa, start, options)
    return out.g, out.state, out.objective, out.gap, out.relative_gap, out.n_iter


def dense_epoch(X: Any, *args: Any) -> Any:
    return _epoch(core.Rows(X), *args)


def csr_epoch(indptr: Any, indices: Any, values: Any, d: int, *args: Any) -> Any:
    return _epoch(core.Rows(indptr, indices, values, d), *args)


def _epoch(
    rows: Any, y: Any, cap: Any, W: Any, b: Any, intercept: bool, eta: float, decay: float, first: int, reduce: bool,
    seed: int,
) -> Any:  # fmt: skip
    return core.svrg_epoch(
        rows, y, cap, W, b, fit_intercept=intercept, eta=eta, decay=decay, first=first, reduce=reduce, seed=seed
    )


def _kernel_problem(y: Any, cap: Any, k: int, loss: Any) -> Any:
    kind, top_k, mu, theta, rivals = loss
    kind = "odm" if kind == "band" else kind
    return core.Problem(y, cap, k, kind, top_k=top_k, mu=mu, theta=theta, fixed_rivals=rivals)


def kernel_gaps(
    F: Any, alpha: Any, y: Any, cap: Any, shift: Any, g: Any, free: Any, longer: Any, saved: Any, loss: Any
) -> Any:
    problem = _kernel_problem(y, cap, len(F), loss)
    out = core.kernel_gaps(F, alpha, problem, shift=shift, gap_of=g, free=free, stretches=longer, savings=saved)
    return out.gap, out.value, out.dual, out.product


def kernel_ascent(
    gram: Any, row: Any, column: Any, F: Any, alpha: Any, y: Any, cap: Any, curvature: Any, b: Any, tot: Any, t: float,
    longer: Any, saved: Any, norm: float, target: float, max_passes: int, seed: int, loss: Any,
) -> Any:  # fmt: skip
    out = core.kernel_ascent(
        gram, row, column, F, alpha, _kernel_problem(y, cap, len(F), loss), curvature=curvature, b=b, tot=tot, t=t,
        stretches=longer, savings=saved, norm=norm, target=target, max_iter=max_passes, seed=seed,
    )  # fmt: skip
    return out.gap, out.n_iter, out.n_updates


def kernel_balance(F: Any, alpha: Any, y: Any, cap: Any, shift: Any, loss: Any) -> None:
    core.kernel_circulation(F, alpha, _kernel_problem(y, cap, len(F), loss), shift)


def table_balance(alpha: Any, y: Any, cap: Any, together: bool) -> None:
    core.table_circulation(alpha, y, cap, together)
