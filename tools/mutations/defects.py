"""Defects to seed: a file of `src/mixedgm`, text that it has exactly once, and the wrong text."""

from __future__ import annotations

from typing import NamedTuple


class Defect(NamedTuple):
    """One wrong line, and tests outside the mirror of its room that are worth trying early."""

    file: str
    right: str
    wrong: str
    near: tuple[str, ...] = ()


MISSING = (
    "tests/reference/test_missing_cells.py",
    "tests/surface/studies/missing/test_missing_model.py",
)
REFERENCE = ("tests/contracts", "tests/reference")

DEFECTS = (
    # -- files of the package itself
    Defect("base/atomic.py", "temporary.chmod(0o666 & ~umask)", "temporary.chmod(0o666)"),
    Defect(
        "fit/certificate.py", "np.exp(-odds)", "np.exp(odds)", ("tests/reference/test_hurdle.py",)
    ),
    Defect(
        "base/checkpoint.py",
        "if checksum != self._checksum(index, body):",
        "if len(checksum) != _CHECKSUM:",
        ("tests/unit/base/test_parallel.py",),
    ),
    Defect(
        "base/checkpoint.py",
        'f"{self.identity}:{index}:"',
        'f"{self.identity}:"',
        ("tests/unit/base/test_parallel.py", "tests/stress"),
    ),
    Defect("base/errors.py", "if length > _LISTED:", "if length > 2 * _LISTED:"),
    Defect(
        "fit/estimates.py",
        "optimality.objective + task.log_jacobian, optimality.kkt",
        "optimality.objective, optimality.kkt",
        ("tests/invariance/test_units.py", "tests/reference/test_scored.py"),
    ),
    Defect(
        "fit/estimates.py",
        "further > 2.0 * theta[precisions][numbers]",
        "further > 0.0 * theta[precisions][numbers]",
        ("tests/surface/fit/test_refit.py",),
    ),
    Defect(
        "fit/fitted.py",
        "mean = [0.5 * (part + part.swapaxes(1, 2)) for part in moderation.deviations]",
        "mean = [0.5 * part for part in moderation.deviations]",
        ("tests/surface/fit/test_moderated_fits.py",),
    ),
    Defect(
        "fit/fitting.py",
        "bad = [point for point in path.points if not point.converged]",
        "bad = [point for point in path.points[1:] if not point.converged]",
        ("tests/surface/estimator/test_convergence.py",),
    ),
    Defect(
        "fit/options.py",
        'ensure_in("(0, inf)", tol=self.tol)',
        'ensure_in("[0, inf)", tol=self.tol)',
        ("tests/surface/estimator/test_options.py",),
    ),
    Defect("base/parallel.py", "n_cores() + 1 + n_jobs", "n_cores() + n_jobs"),
    Defect(
        "base/parallel.py",
        "spawn_key=(*root.spawn_key, k)",
        "spawn_key=(*root.spawn_key, k % 7)",
    ),
    Defect("base/printable.py", "cut(text[1:-1], most - 2)", "cut(text[1:-1], most)"),
    Defect(
        "fit/options.py",
        "if value is None or isinstance(value, (bool",
        "if isinstance(value, (bool",
    ),
    Defect(
        "base/threads.py",
        "return [results[k] for k in range(len(tasks))]",
        "return list(results.values())",
        ("tests/contracts/test_rows.py",),
    ),
    # -- cli
    Defect(
        "cli/output.py",
        "if target.exists() and Path(each).exists() and target.samefile(each):",
        "if False:",
        ("tests/surface/cli/test_errors.py",),
    ),
    Defect(
        "cli/lists.py",
        """        at += 1
        if inside and text""",
        """        at += 1
        if text""",
    ),
    Defect(
        "cli/console.py",
        "return not self.quiet and sys.stderr.isatty()",
        "return not self.quiet",
        ("tests/surface/cli/test_command_line.py", "tests/surface/cli/test_errors.py"),
    ),
    # -- completion
    Defect(
        "path/completion.py",
        "0.5 * (np.einsum",
        "1.0 * (np.einsum",
        MISSING,
    ),
    Defect(
        "path/completion.py",
        "terms + 0.5 * ((seen @ density.coupling) * seen)",
        "terms + ((seen @ density.coupling) * seen)",
        MISSING,
    ),
    Defect("path/completion.py", "log_weight - self.log_drawn", "log_weight", MISSING),
    Defect(
        "path/completion.py",
        "np.sqrt(len(points)) * (left @ right)",
        "left @ right",
        MISSING,
    ),
    # -- datasets
    Defect(
        "datasets/simulate.py",
        "] = block.T\n",
        "] = -block.T\n",
    ),
    Defect("datasets/bundled.py", "if not missing:", "if missing:"),
    # -- diagnostics
    Defect("diagnostics/consistency.py", "np.sqrt((n - 1) / n *", "np.sqrt(1.0 / n *"),
    Defect("diagnostics/theorem.py", "4.0 / m * (self.tau_bar + 1.0)", "4.0 / m * self.tau_bar"),
    Defect("diagnostics/theorem.py", "ahead - 2.0 * centre + behind", "ahead - behind"),
    Defect(
        "diagnostics/truth.py", "(numbers - units.centre) / units.scale", "numbers / units.scale"
    ),
    # -- estimator
    Defect(
        "estimator/new_data.py",
        'if parameters == "fixed" or not gaps.missing.any():',
        'if parameters == "resampled" or not gaps.missing.any():',
        ("tests/surface/studies/missing/test_impute.py",),
    ),
    Defect(
        "estimator/new_data.py",
        "if not frame.n_rows or (weights is not None and not np.any(weights)):",
        "if not frame.n_rows:",
        ("tests/surface/table/test_dask.py",),
    ),
    Defect(
        "estimator/imputer.py",
        'complete = model.missing == "drop" or model.loss == "likelihood-mc"',
        'complete = model.missing == "drop"',
        ("tests/surface/studies/missing/test_imputer.py",),
    ),
    # -- report
    Defect(
        "report/graph.py",
        '"y": number(-y),',
        '"y": number(y),',
        ("tests/surface/report/test_report.py",),
    ),
    Defect(
        "report/path_content.py",
        "np.log(known) - np.log(lam)",
        "np.log(known) + np.log(lam)",
        ("tests/surface/report/test_report.py",),
    ),
    Defect(
        "report/plain.py",
        "if value is None or not math.isfinite(value):",
        "if value is None:",
        ("tests/surface/report/test_report.py",),
    ),
    Defect(
        "report/material.py",
        "if not compared <= names:",
        "if not names:",
        ("tests/surface/report/test_report.py",),
    ),
    # -- inference
    Defect(
        "families/hurdle.py",
        "-mean * (there + zero * square)",
        "-mean * there",
    ),
    Defect(
        "inference/row_sums.py",
        "sums[first + others] += wanted.T @ joined",
        "sums[first + others] -= wanted.T @ joined",
    ),
    Defect(
        "inference/two_groups.py",
        "count / (1.0 - share + slab.sum(axis=1))",
        "count / (1.0 + slab.sum(axis=1))",
    ),
    Defect(
        "inference/statistics.py", "np.minimum(log_p, 0.0) - np.log(2.0)", "np.minimum(log_p, 0.0)"
    ),
    Defect(
        "inference/pairs.py", "1.0 - count / n, _LEAST_LEFT", "1.0 - 2.0 * count / n, _LEAST_LEFT"
    ),
    Defect(
        "studies/missing/report.py",
        "left = left - before * (weights @ (before * left) / total)",
        "left = left - before * ((before * left).sum() / total)",
        ("tests/surface/studies/missing/test_missing_report.py",),
    ),
    # -- joint
    Defect(
        "joint/kernels.py",
        "slope * slope / beta + np.log(2.0 * np.pi / beta)",
        "slope * slope / beta",
    ),
    Defect(
        "joint/conditioning.py",
        "params.linear - 0.5 * (numbers @ params.precision)",
        "params.linear - numbers @ params.precision",
    ),
    Defect(
        "joint/validity.py",
        "0.5 * float((part**2).sum() - 2.0",
        "0.5 * float((part**2).sum() - 1.0",
    ),
    Defect("joint/gibbs.py", "irfft(np.abs(spectrum) ** 2", "irfft(np.abs(spectrum)"),
    Defect(
        "joint/spiked.py",
        "by_chain.std(axis=1, ddof=1) / np.sqrt(_CHAINS)",
        "by_chain.std(axis=1, ddof=1)",
    ),
    # -- model
    Defect(
        "model/params.py",
        "np.where(there, 0.5 * (self.coef + self.coef.T), 0.0)",
        "np.where(there, self.coef, 0.0)",
        ("tests/surface/fit/test_nodewise.py",),
    ),
    Defect(
        "families/finite.py",
        "expected = prob @ features",
        "expected = prob[::-1] @ features",
        ("tests/contracts/test_smooth.py",),
    ),
    Defect(
        "families/hurdle.py",
        "np.array([a, mean / variance, 1.0 / variance])",
        "np.array([a, mean, 1.0 / variance])",
        ("tests/contracts/test_smooth.py",),
    ),
    Defect(
        "model/density.py",
        "_linear(params, deviation, numbers, codes) - middle @ deviation",
        "_linear(params, deviation, numbers, codes)",
        ("tests/surface/fit/test_moderated.py", "tests/surface/fit/test_moderated_fits.py"),
    ),
    Defect("model/moderation.py", "coef=params.coef + change", "coef=params.coef - change"),
    Defect(
        "model/layout.py",
        "target_ptr[v + 1] += target_ptr[v]",
        "target_ptr[v + 1] += target_ptr[0]",
    ),
    Defect(
        "model/layout.py",
        "((moderator + 1) * self.n_nodes + first)",
        "(self.n_nodes + first)",
        ("tests/unit/select/test_error_rates.py",),
    ),
    # -- objective
    Defect(
        "objective/pseudolikelihood.py",
        "square += 2.0 * (a * mean_z - b * product - b * a * mean[s])",
        "square += 2.0 * (a * mean_z - b * product)",
    ),
    Defect(
        "objective/pseudolikelihood.py",
        "mean_eta += mean[a] * values[i]",
        "mean_eta -= mean[a] * values[i]",
    ),
    Defect(
        "joint/covariance.py",
        "linear + 0.5 * np.sum(slope * means[:, 1:], axis=1)",
        "linear + np.sum(slope * means[:, 1:], axis=1)",
    ),
    Defect(
        "objective/likelihood.py",
        "model.log_partition - constant - theta @ self.observed",
        "model.log_partition - theta @ self.observed",
    ),
    Defect("objective/sampled.py", "plain.grad + ridge.push(theta)", "plain.grad"),
    Defect("objective/conditional.py", "columns.T @ square @ columns", "columns.T @ columns"),
    # -- parts
    Defect(
        "base/parts/contract.py",
        "out[at] if value is None else out[at] + value",
        "out[at] if value is None else value",
    ),
    Defect("base/parts/local.py", "if all(a + b > most", "if all(a > most"),
    Defect(
        "base/parts/cluster.py",
        "for at in range(0, len(level), _FAN_IN)",
        "for at in range(0, len(level) - 1, _FAN_IN)",
        ("tests/surface/table/test_dask.py",),
    ),
    Defect("base/parts/cluster.py", "if not lost or attempt == _ATTEMPTS - 1:", "if True:"),
    # -- path
    Defect("select/stability.py", '"(0, 0.5)", beta', '"(0, 5.0)", beta'),
    Defect("select/criteria.py", "lams[-1] <= 0.5 * lams[best]", "lams[-1] <= lams[best]"),
    Defect(
        "path/rounds.py",
        "if kkt <= tol and (number >= redrawn",
        "if kkt <= 10.0 * tol and (number >= redrawn",
        MISSING,
    ),
    Defect("path/task.py", "lam, share * scale)", "lam, share)"),
    Defect("select/selection.py", "max(last, len(path)) + 1, most", "max(last, len(path)), most"),
    # -- penalty
    Defect("penalty/weights.py", "share * scales[u] * scales[v]", "share * scales[u] * scales[u]"),
    Defect(
        "penalty/weights.py",
        "1.0 / (sizes + 1.0 / total_weight)",
        "1.0 / (sizes + 1.0)",
        ("tests/reference/test_adaptive.py",),
    ),
    Defect(
        "penalty/group_lasso.py",
        "x = grad[k] + factor * theta[k]",
        "x = grad[k] - factor * theta[k]",
    ),
    Defect("penalty/group_lasso.py", "length**3 - 1.0 / divisor", "length**3"),
    # -- rows
    Defect("rows/scored_kernels.py", "if high + 2 > b else b", "if high + 2 > b + 3 else b"),
    Defect(
        "rows/scored_curvature.py",
        "x = weight[i] * (scores[k] - mean[i]) * probs[k, i]",
        "x = (scores[k] - mean[i]) * probs[k, i]",
    ),
    Defect(
        "rows/device.py",
        "np.bincount(node, linear, len(out))) * self.total_weight",
        "np.bincount(node, linear, len(out)))",
    ),
    Defect("rows/outside.py", "row[v - first] += x * other[v]", "row[v - first] -= x * other[v]"),
    Defect(
        "rows/curvature.py",
        "to, row = np.uint64((origin[b] + codes[b, i]) * length), np.uint64(i * length)",
        "to, row = np.uint64((origin[b] + codes[b, 0]) * length), np.uint64(i * length)",
    ),
    Defect(
        "rows/parts.py",
        "self.declared.numbers(part.numbers[some], codes) - self.centre",
        "self.declared.numbers(part.numbers[some], codes)",
        ("tests/surface/table/test_parts.py",),
    ),
    Defect(
        "rows/curvature.py",
        "out[own, of_b], out[own, of_x] = per_b * with_b[0, 1:], with_x[0, 1:]",
        "out[own, of_b], out[own, of_x] = with_b[0, 1:], with_x[0, 1:]",
    ),
    # -- solve
    Defect(
        "solve/problem.py",
        "if not (self._lifted and np.array_equal(self._lifted[0][0], theta)):",
        "if not self._lifted:",
    ),
    Defect(
        "solve/subproblem.py",
        "x += vectors[base + j * m + i] * new[i]",
        "x += vectors[base + i * m + j] * new[i]",
    ),
    Defect(
        "solve/contrasts.py",
        "total[p] = before + weight * half[other + np.uint64(p)]",
        "total[p] = weight * half[other + np.uint64(p)]",
    ),
    Defect(
        "solve/monte_carlo.py",
        "theta + 0.5**halvings * (target - theta)",
        "theta + 0.5**halvings * target",
        ("tests/unit/objective/test_sampled.py",),
    ),
    Defect(
        "joint/margins.py",
        "np.maximum(table.variance - np.diagonal(out), 0.0)",
        "np.maximum(table.variance, 0.0)",
    ),
    Defect("solve/working_set.py", "if inner_tol < 1e-3 * tol:", "if inner_tol < tol:"),
    # -- store
    Defect(
        "store/model_file.py", "if not np.array_equal(block, block.swapaxes(-1, -2)):", "if False:"
    ),
    Defect("store/archive.py", "if len(fields) < len(pairs):", "if not fields:"),
    Defect(
        "store/model_file.py",
        "if any((np.diff(part) <= 0).any() for part in by_point):",
        "if any((np.diff(part) < 0).any() for part in by_point):",
    ),
    # -- studies
    Defect(
        "studies/groups/differences.py",
        "(1.0 + (by_chance >= observed).sum()) / (1.0 + len(by_chance))",
        "(by_chance >= observed).sum() / len(by_chance)",
        ("tests/surface/studies/groups/test_compare.py",),
    ),
    Defect(
        "studies/missing/pooling.py",
        "(1.0 + 1.0 / self.n_results) * self.between",
        "self.between",
        ("tests/surface/studies/missing/test_pooling.py",),
    ),
    Defect("studies/resampling/replicates.py", "others = n_reached - 1.0", "others = n_reached"),
    Defect(
        "studies/fit_check/discrepancy.py",
        "outliers += w @ (np.abs(residual) > OUTLIER)",
        "outliers += (np.abs(residual) > OUTLIER).sum()",
        ("tests/surface/studies/fit_check/test_check_fit.py",),
    ),
    Defect(
        "studies/missing/cells.py",
        "out[rows[seen], node] = -log_prob[codes[seen], seen]",
        "out[rows[seen], node] = log_prob[codes[seen], seen]",
        ("tests/surface/studies/missing/test_incomplete_rows.py",),
    ),
    Defect("studies/groups/compare.py", "-size[:-1] / size[-1]", "-size[:-1]"),
    Defect(
        "studies/resampling/resamples.py",
        "return int(self.clusters.max()) + 1",
        "return int(self.clusters.max())",
        ("tests/surface/studies/resampling/test_bootstrap.py",),
    ),
    # -- table
    Defect(
        "table/parted/columns.py",
        "delta * square * step * a * b * (a * a - a * b + b * b)",
        "delta * square * step * a * b * (a * a + b * b)",
    ),
    Defect(
        "table/checks/columns.py",
        "positive = shape.skewness > 0.0 and other.low > 0.0",
        "positive = shape.skewness > 0.0",
    ),
    Defect("table/missing.py", "n_usable = n_kept + n_incomplete", "n_usable = n_incomplete"),
    Defect(
        "table/checks/dependence.py", "table /= np.where(scale > 0, scale, 1.0)", "table /= 1.0"
    ),
    Defect(
        "table/encode.py",
        "np.where(np.isnan(real), -1, real != 0.0) if code < 0 else real != 0.0",
        "real != 0.0",
    ),
    # -- results and pictures
    Defect(
        "pictures/network/plot.py",
        "linewidths=[self.scale.width(sizes[at]) for at in plain]",
        "linewidths=[1.0 for at in plain]",
    ),
    Defect(
        "pictures/network/sizes.py",
        "return min((size - low) / span, 1.0) if span > 0.0 else 1.0",
        "return (size - low) / span if span > 0.0 else 1.0",
    ),
    Defect(
        "results/export.py",
        "matrix[u, v] = matrix[v, u] = -edge.strength",
        "matrix[u, v] = -edge.strength",
    ),
    Defect("results/export.py", 'or cell in ("+", "-"):', 'or cell in ("+", "-", "="):'),
    Defect(
        "pictures/network/labels.py",
        "(_WRONG * faults + np.minimum(taste[at], _WRONG)).argmin()",
        "np.minimum(taste[at], _WRONG).argmin()",
    ),
)
