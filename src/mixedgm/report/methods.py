"""Material in -> a paragraph for a paper, what to cite, and versions, seed and time."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version

from mixedgm.base.printable import bounded, few, number_of, one_line
from mixedgm.report.material import Material
from mixedgm.report.plain import Json, shown
from mixedgm.results.text import lam_text
from mixedgm.store import library_version

_LOSSES = {
    "pseudolikelihood": "by penalised pseudolikelihood",
    "likelihood": "by penalised maximum likelihood",
    "likelihood-mc": "by penalised maximum likelihood with gradients from Markov chains",
    "nodewise": "by a penalised regression of every column on all others",
}
_WEIGHTS = {
    "calibrated": "a group lasso penalty on the parameters of each edge, weighted so that the "
    "estimate is free of units",
    "uniform": "a group lasso penalty on the parameters of each edge, with equal weights",
    "adaptive": "an adaptive group lasso penalty on the parameters of each edge",
}
_LEE_HASTIE = """@article{LeeHastie2015,
  author  = {Lee, Jason D. and Hastie, Trevor J.},
  title   = {Learning the Structure of Mixed Graphical Models},
  journal = {Journal of Computational and Graphical Statistics},
  volume  = {24},
  number  = {1},
  pages   = {230--253},
  year    = {2015},
  doi     = {10.1080/10618600.2014.900500}
}"""


def methods_content(material: Material) -> Json:
    """Return the paragraph, the BibTeX entries, and the facts of the computation."""
    return {
        "text": methods_text(material),
        "bibtex": bibtex(),
        "facts": [[name, one_line(bounded(text))] for name, text in _facts(material)],
    }


def methods_text(material: Material) -> str:
    """Return how the model was made, from its actual options and numbers.

    Examples
    --------
    >>> import mixedgm as mg
    >>> from mixedgm.report.material import gather
    >>> columns = {"x": "continuous", "y": "continuous"}
    >>> fitted = mg.from_params(columns, {"precision": [[2, 1], [1, 2]]}).fitted_
    >>> print(methods_text(gather(fitted, {})))
    We used a mixed graphical model (Lee and Hastie, 2015) with given parameters for 2 columns
    (2 continuous). It has 1 edge of 1 possible pair.
    """
    return " ".join(_sentences(material))


def _sentences(material: Material) -> Iterator[str]:
    fitted, summary = material.fitted, material.summary
    report, settings = fitted.report, material.settings
    kinds = ", ".join(f"{len(columns)} {kind}" for kind, columns in summary.columns.items())
    columns = f"{number_of(summary.n_columns, 'column')} ({kinds})"
    edges = sum(edge.moderator is None for edge in fitted.edges)
    graph = f"{number_of(edges, 'edge')} of {number_of(summary.n_possible, 'possible pair')}"
    if not report.was_fitted:
        model = "a mixed graphical model (Lee and Hastie, 2015)"
        yield f"We used {model} with given parameters for {columns}."
        yield f"It has {graph}."
        return
    data = f"{number_of(report.n_rows, 'row')}"
    if report.total_weight != report.n_rows:
        data += f" with a total weight of {report.total_weight:,.6g}"
    yield (
        "We estimated a mixed graphical model (Lee and Hastie, 2015), in which two columns "
        "without an edge are independent given all others, from "
        f"{data} and {columns}, {_LOSSES[report.loss]} with "
        f"{_WEIGHTS[str(settings.get('penalty_weights', 'calibrated'))]}."
    )
    yield from _roles(material)
    yield from _missing(material)
    yield _choice(material)
    if report.refitted:
        yield "The parameters of the chosen graph were then estimated without penalty."
        if report.shrunken:
            yield (
                "Edges of several parameters were shrunken by the variance of their coefficients, "
                "which was estimated from all edges (empirical Bayes)."
            )
    if report.ridge:
        count = number_of(len(report.ridge), "edge")
        yield f"For {count} whose size the data do not determine a ridge worth one row was added."
    yield f"The graph has {graph}."
    if summary.n_deviations:
        yield (
            f"{number_of(summary.n_deviations, 'deviation')} of edges with moderators "
            f"{'was' if summary.n_deviations == 1 else 'were'} found."
        )
    if summary.expected_false is not None and fitted.edges:
        if summary.rate_known:
            yield f"About {summary.expected_false:.2g} of the edges are expected to be false."
        else:
            yield "With so few rows it is not known how many of the edges are false."
    state = "satisfied" if report.solved else "not satisfied"
    limit = f"limit {report.tol:.0e}"
    if report.kkt_error > 0.0:
        drawn = "gradients" if report.completion is None else "completions"
        limit += f", Monte Carlo error of the {drawn} {report.kkt_error:.1g}"
    yield (
        f"The conditions of the optimum were {state}: their recomputed violation is "
        f"{report.kkt:.1e} ({limit})."
    )
    yield from _studies(material)
    yield f"Computations were made with mixedgm {library_version()} in Python."


def _roles(material: Material) -> Iterator[str]:
    schema, summary = material.fitted.schema, material.summary
    fixed = [name for name in summary.covariates if name not in summary.moderators]
    if fixed:
        named = few(fixed, 8, lambda name: shown(name, 40))
        yield f"All other columns were modelled given {named}."
    if summary.moderators:
        named = few(summary.moderators, 8, lambda name: shown(name, 40))
        yield f"Edges were allowed to vary with {named}."
    if summary.transformed:
        named = few(summary.transformed, 8, lambda name: shown(name, 40))
        why = " because of how their values are distributed"
        why = why if material.settings.get("transforms") == "auto" else ""
        yield f"Normal scores of ranks (nonparanormal) were used for {named}{why}."
    if schema.left_out:
        named = few([column.name for column in schema.left_out], 5, lambda name: shown(name, 40))
        yield f"Left out: {named}."


def _missing(material: Material) -> Iterator[str]:
    report = material.fitted.report
    if report.completion is not None:
        gaps = report.completion
        yield (
            f"Missing values ({number_of(gaps.n_cells, 'cell')} in "
            f"{number_of(gaps.n_rows, 'row')}) were averaged out under the model itself, assuming "
            "that they are missing at random given what is observed."
        )
    elif material.settings.get("missing") == "drop":
        yield "Rows with missing values were left out."


def _choice(material: Material) -> str:
    fitted = material.fitted
    report, path = fitted.report, fitted.path
    if report.criterion is None:
        return f"The penalty was fixed at λ = {lam_text(report.lam)}."
    if fitted.edge_probability is not None:
        return (
            "Edges were chosen by tests of all pairs of columns, each given the other edges, with "
            f"a {report.criterion}."
        )
    among = "" if path is None else f" from a path of {len(path)} values"
    return f"The penalty λ = {lam_text(report.lam)} was chosen by {report.criterion}{among}."


def _studies(material: Material) -> Iterator[str]:
    studies, check = material.studies, material.check
    if studies.tests is not None:
        drawn = "rows drawn from the model" if studies.tests.covariance == "model" else "the rows"
        given = {"free": "all other pairs", "graph": "the edges that pass their own tests"}
        yield (
            f"Every pair was tested given {given[studies.tests.method]}, with variances from "
            f"{drawn}."
        )
    if studies.bootstrap is not None:
        yield (
            f"Uncertainty was assessed by a {studies.bootstrap.kind} bootstrap with "
            f"{number_of(studies.bootstrap.n_done, 'resample')}."
        )
    if studies.comparison is not None:
        groups = len(studies.comparison.groups)
        yield f"{groups} groups were compared by {studies.comparison.method}."
    if check is not None:
        n_all = len(check.node_checks) + len(check.pair_checks)
        yield (
            f"Goodness of fit was checked against {check.n_simulated} simulated tables, which "
            f"flagged {len(check.flagged)} of {n_all} columns and pairs."
        )


def bibtex() -> str:
    """Return what to cite: the model, and the program."""
    release = library_version()
    return f"""{_LEE_HASTIE}

@software{{mixedgm,
  author  = {{{{mixedgm developers}}}},
  title   = {{mixedgm: mixed graphical models in Python}},
  version = {{{release}}}
}}"""


def _facts(material: Material) -> Iterator[tuple[str, str]]:
    """Yield what somebody needs who wants the same numbers again."""
    fitted, settings = material.fitted, material.settings
    report, path = fitted.report, fitted.path
    yield "mixedgm", library_version()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    yield "with", f"Python {platform.python_version()}, {packages}"
    seed = settings.get("random_state")
    if not isinstance(seed, int):
        seed = "none" if seed is None else "a generator"
    yield "seed", f"{seed} (a fit without folds, subsamples or chains draws no random numbers)"
    if report.was_fitted:
        solved = report.seconds if path is None else float(path.seconds.sum())
        what = "of the fit" if path is None else f"for the path of {len(path)} penalties"
        yield "solver time", f"{solved:.2g} s {what}"
        yield "penalty", lam_text(report.lam)
        yield "objective", f"{report.objective:.7g}"
        error = f", Monte Carlo error {report.kkt_error:.1g}" if report.kkt_error > 0.0 else ""
        yield "certificate", f"KKT {report.kkt:.2g}, limit {report.tol:.2g}{error}"
    chosen = {
        name: value
        for name, value in settings.items()
        if name not in ("n_jobs", "verbose", "random_state")
    }
    yield "options", ", ".join(f"{name}={shown(repr(value), 60)}" for name, value in chosen.items())
