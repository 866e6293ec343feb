"""Material in -> what speaks for the model and what against it, in words."""

from __future__ import annotations

from collections.abc import Sequence

from mixedgm.base.errors import finding_lines
from mixedgm.base.printable import bounded, few, number_of, one_line, rows
from mixedgm.families import KINDS
from mixedgm.report.material import Material
from mixedgm.report.plain import Json, shown
from mixedgm.studies.fit_check.result import ModelCheck, NodeCheck, PairCheck
from mixedgm.table.read import plain_columns
from mixedgm.table.schema import Schema

GOOD, LOOK, BAD, UNKNOWN = "good", "look", "bad", "unknown"
_MOST_FLAGS = 40
_BEYOND = (
    "With many rows even differences that do not matter are flagged: compare observed and "
    "simulated. One cause can show in several places: mend one thing, then check again."
)


def trust_content(material: Material) -> list[Json]:
    """Return the questions that a careful reader asks, each with its answer."""
    return [
        _data(material),
        _certificate(material),
        _choice(material),
        _fit(material),
        _missing(material),
        _assumptions(material),
    ]


def _answer(key: str, title: str, status: str, summary: str, lines: Sequence[str] = ()) -> Json:
    return {
        "key": key,
        "title": title,
        "status": status,
        "summary": one_line(bounded(summary)),
        "lines": [one_line(bounded(line)) for line in lines],
    }


def _data(material: Material) -> Json:
    title = "Is anything odd about the data?"
    left_out = [
        f"Column {shown(column.name)!r} was left out: {column.reason}."
        for column in material.fitted.schema.left_out
    ]
    if material.gaps is None:
        text = "No table was given with this report, so that nothing can be said about the data."
        return _answer("data", title, UNKNOWN, text, left_out)
    serious = [each for each in material.findings if each.severity != "note"]
    lines = [*finding_lines(serious), *left_out]
    lines += finding_lines([each for each in material.findings if each.severity == "note"])
    if not lines:
        return _answer("data", title, GOOD, "The checks of the table found nothing to mention.")
    found = number_of(len(material.findings) + len(left_out), "thing")
    text = f"The checks of the table found {found} to know about."
    return _answer("data", title, LOOK if serious or left_out else UNKNOWN, text, lines)


def _certificate(material: Material) -> Json:
    title = "Is the computation right?"
    report = material.fitted.report
    if not report.was_fitted:
        text = "The parameters were given, not fitted: there is nothing to certify."
        return _answer("certificate", title, UNKNOWN, text)
    notes = [*report.notes]
    number = f"{report.kkt:.2g}"
    if report.kkt_error > 0.0:
        number += f", with a Monte Carlo error of {report.kkt_error:.1g}"
    if report.converged:
        within = report.kkt <= report.tol
        limit = f"the limit is {report.tol:.2g}" if within else "which explains all of it"
        text = (
            "Yes. At the estimates the conditions of the optimum were computed afresh, and hold up "
            f"to {number} ({limit}). This certifies the computation, not the conclusions."
        )
        return _answer("certificate", title, GOOD, text, notes)
    if report.solved:
        text = (
            "Yes, up to the draws of the missing cells. At the rows completed by these draws the "
            f"conditions of the optimum hold up to {report.kkt:.2g} (the limit is "
            f"{report.tol:.2g}); with other draws they would be violated by about "
            f"{report.kkt_error:.1g}, on the scale of lam."
        )
        return _answer("certificate", title, GOOD, text, notes)
    text = (
        f"Not quite: the conditions of the optimum are violated by {number}, more than the limit "
        f"of {report.tol:.2g}. {report.message}"
    )
    return _answer("certificate", title, BAD, text, notes)


def _choice(material: Material) -> Json:
    title = "How many edges may be false?"
    summary, fitted = material.summary, material.fitted
    report = fitted.report
    edges = number_of(len(fitted.edges), "edge")
    lines = []
    if report.open_end:
        lines.append(report.open_end)
    if report.ridge:
        pairs = [f"{shown(a, 40)} – {shown(b, 40)}" for a, b in report.ridge[:5]]
        more = f" and {len(report.ridge) - 5} more" if len(report.ridge) > 5 else ""
        lines.append(
            f"The data do not determine the size of these edges: {', '.join(pairs)}{more}. They "
            "have a ridge worth one row, so their parameters are not to be compared."
        )
    if summary.expected_false is not None:
        false = f"about {summary.expected_false:.2g} of them are expected to be false"
        if not summary.rate_known:
            false = "with so few rows it is not known how many of them are false"
        text = (
            f"The {edges} were chosen by tests of all pairs ({report.criterion}); {false}. An edge "
            "that is not drawn may be absent or undecided: tests of edges tell which."
        )
        few = summary.rate_known and summary.expected_false <= 0.2 * max(len(fitted.edges), 1)
        return _answer("choice", title, GOOD if few and not report.open_end else LOOK, text, lines)
    if report.criterion is not None:
        text = (
            f"The {edges} are those of the penalty chosen by {report.criterion}. Nothing here says "
            "how many of them are false; tests of edges and the bootstrap do."
        )
    elif report.was_fitted:
        text = (
            f"The {edges} are those of a penalty that was given, so how many of them are false is "
            "not known; tests of edges and the bootstrap tell."
        )
    else:
        text = f"The {edges} were given."
    given = material.studies.tests is not None or material.studies.bootstrap is not None
    return _answer("choice", title, LOOK if report.open_end or not given else GOOD, text, lines)


def _fit(material: Material) -> Json:
    title = "Does the model fit the data?"
    check = material.check
    if check is None:
        text = f"Not checked: {material.not_checked}. model.check_fit(table) makes the check."
        return _answer("fit", title, UNKNOWN, text)
    n_all = len(check.node_checks) + len(check.pair_checks)
    how = (
        f"Compared with {check.n_simulated} simulated tables of {rows(check.n_rows)}. If the model "
        f"were right, the chance of any flag would be {check.alpha:g}."
    )
    if not check.flagged:
        text = f"Nothing is flagged among {n_all} columns and pairs. {how}"
        return _answer("fit", title, GOOD, text)
    text = f"In {len(check.flagged)} of {n_all} checks the data differ from the model. {how}"
    answer = _answer("fit", title, LOOK, text, (_BEYOND,))
    assert isinstance(answer, dict)
    return {**answer, "remedies": _remedies(material, check)}


def _remedies(material: Material, check: ModelCheck) -> list[Json]:
    """Return what is flagged by what it means, with what to do about all of it."""
    found: list[Json] = []
    for each in check.by_meaning():
        text, _, to_do = each.advice.partition(" To do: ")
        flags = [_flag(material, flag) for flag in each.flags[:_MOST_FLAGS]]
        found.append(
            {
                "meaning": each.meaning,
                "text": one_line(bounded(text)),
                "toDo": one_line(bounded(to_do)),
                "flags": flags,
                "hidden": len(each.flags) - len(flags),
            }
        )
    return found


def _flag(material: Material, flag: NodeCheck | PairCheck) -> Json:
    size, names = "", [flag.column] if isinstance(flag, NodeCheck) else [flag.source, flag.target]
    if isinstance(flag, PairCheck):
        size = f"{flag.observed:.2f} in the rows, {flag.simulated:.2f} simulated"
    return {
        "about": [material.place.get(name, -1) for name in names],
        "names": [shown(name, 60) for name in names],
        "where": shown(flag.where),
        "size": size,
    }


def _missing(material: Material) -> Json:
    title = "What is missing?"
    report, missing = material.fitted.report, material.missing
    if missing is None:
        if report.completion is not None:
            text = f"The fit had {report.completion}."
            return _answer("missing", title, LOOK, text)
        if material.gaps is None:
            return _answer("missing", title, UNKNOWN, "No table was given with this report.")
        return _answer("missing", title, GOOD, "No cell of the table is missing.")
    columns = plain_columns(missing.columns())
    counts = zip(columns["column"], columns["missing"], strict=True)
    worst = [f"{shown(name, 40)} ({count:,.6g})" for name, count in counts if count][:8]
    lines = [f"Most gaps: {', '.join(worst)}.", *missing.notes, missing.assumption]
    if report.completion is not None:
        lines.append(f"The fit had {report.completion}.")
    return _answer("missing", title, LOOK, f"{missing.title}.", lines)


def _assumptions(material: Material) -> Json:
    title = "What is assumed?"
    fitted = material.fitted
    schema, report = fitted.schema, fitted.report
    lines = [
        "Edges describe relations of pairs, given all other columns. They add up: no three columns "
        "act together" + (", but for what the moderators change." if fitted.moderators else "."),
        "An edge is not evidence of cause, and a column that was not measured can make one.",
        "Rows are independent of each other (no families, no repeated measurements), unless tests "
        "were made with clusters.",
        *_kind_assumptions(schema),
    ]
    if any(column.role == "covariate" for column in schema.columns):
        lines.append(
            "Nothing is said about how covariates are related among themselves: all else is given "
            "their values."
        )
    if not report.refitted and report.was_fitted and report.lam != 0.0:
        lines.append("Estimates are shrunken by the penalty: edges are stronger in the rows.")
    if report.refitted:
        lines.append(
            "Strengths are estimated without penalty on the rows that chose the edges, so weak "
            "edges look a little stronger than they are."
        )
    if report.completion is not None:
        lines.append(
            "Gaps are taken to depend on values that their rows have, not on the missing values."
        )
    text = "What the numbers above rest on, and what they do not say."
    return _answer("assumptions", title, UNKNOWN, text, lines)


def _kind_assumptions(schema: Schema) -> list[str]:
    """Return what is assumed about the kinds of columns that occur."""
    present = {column.kind for column in schema.columns}
    lines = [kind.assumption for name, kind in KINDS.items() if name in present]
    changed = [column.name for column in schema.columns if column.transform is not None]
    if changed:
        named = few(changed, 5, lambda name: shown(name, 40))
        lines.append(f"Replaced by normal scores of their ranks (nonparanormal): {named}.")
    return lines
