"""What is said about a model, as text and as HTML."""

import pickle
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import mixedgm as mg
from mixedgm.fit.fitted import Edge
from mixedgm.model.nodes import Nodes
from mixedgm.model.params import Params
from mixedgm.results.result import html
from mixedgm.results.summary import summarise
from mixedgm.results.text import edges_text, facts, table_text
from mixedgm.solve.loop import Certificate


def test_the_summary_holds_the_facts(hand):
    found = summarise(hand())
    assert found.continuous == ("age", "wage")
    assert found.categorical == (("sex", 2), ("edu", 3))
    assert found.n_possible == 6
    assert found.edges_by_kind == {
        "continuous-continuous": 1,
        "continuous-categorical": 3,
        "categorical-categorical": 0,
    }
    assert (found.lam, found.kkt, found.tol, found.objective) == (0.1, 2e-6, 1e-5, 1.25)
    assert found.lam_max is None


def test_the_text_of_a_model(hand):
    assert str(summarise(hand())) == (
        "Mixed graphical model\n"
        "  rows         120\n"
        "  columns      4: 2 continuous, 2 categorical (2 to 3 levels)\n"
        "  edges        4 of 6 possible: 1 cont-cont, 3 cont-cat\n"
        "  lam          0.1, given\n"
        "  estimates    shrunken by the penalty\n"
        "  objective    1.25\n"
        "  certificate  KKT 2e-06, at most tol 1e-05: converged\n"
        "\n"
        "Edges\n"
        "source  target  kind                    strength  sign  part.cor\n"
        "age     wage    continuous-continuous   1.000     +     +0.354\n"
        "age     sex     continuous-categorical  0.990     +\n"
        "wage    edu     continuous-categorical  0.566\n"
        "wage    sex     continuous-categorical  0.124     -\n"
        "(no sign: a categorical column with three or more levels)"
    )


def test_the_text_of_a_chosen_lam_names_criterion_and_lam_max(solved):
    found = str(summarise(solved))
    share = solved.report.lam / solved.path.lam_max
    assert f"({share:.2g} of lam_max), by EBIC from 6 values" in found


def test_trouble_is_said_aloud(hand):
    model = hand()
    report = replace(
        model.report,
        certificate=Certificate(1.0, 0.5, converged=False, message="too few steps"),
        notes=("3 rows were dropped",),
        total_weight=240.0,
    )
    summary = summarise(replace(model, report=report))
    text = str(summary)
    assert "KKT 0.5, tol 1e-05: NOT converged. too few steps" in text
    assert "note         3 rows were dropped" in text
    assert "120 with a total weight of 240" in text
    assert "NOT converged" in html(summary)


def estimates_line(model, **report) -> str:
    summary = summarise(replace(model, report=replace(model.report, **report)))
    return dict(facts(summary))["estimates"]


def test_the_estimates_are_shrunken_or_not_and_it_says_where_the_data_do_not_determine_them(hand):
    model, plain = hand(), "without penalty, given these edges"
    assert estimates_line(model, lam=0.0) == "without penalty"
    assert estimates_line(model, refitted=True) == plain
    found = estimates_line(model, refitted=True, ridge=(("sex", "edu"),), noisy=("age", "wage"))
    assert found == (
        f"{plain}; a ridge worth one row on sex - edu, whose size the data do not determine; "
        "noise worth one row in age, wage, which the others determine"
    )
    many = tuple((f"a{k}", "b") for k in range(7))
    assert "on a0 - b, a1 - b, a2 - b, a3 - b, a4 - b and 2 more, whose" in estimates_line(
        model, refitted=True, ridge=many
    )


def test_edges_of_several_parameters_are_said_to_be_shrunken_where_they_are(hand):
    said = "without penalty, given these edges; edges of several parameters shrunken, each by its"
    assert estimates_line(hand(), refitted=True, shrunken=True) == f"{said} own variance"


def test_edges_with_a_ridge_have_a_column_for_it():
    edges = [
        Edge("a", "b", "categorical-categorical", 0.5, "+", None, 0.75, ridge=True),
        Edge("a", "c", "categorical-categorical", 0.4, "-", None, 0.5),
    ]
    head, first, second = edges_text(edges, 100, [0.25, 0.125]).splitlines()
    assert head.split() == [
        "source",
        "target",
        "kind",
        "strength",
        "norm",
        "shrunken",
        "sign",
        "part.cor",
        "ridge",
    ]
    assert first.split()[-5:] == ["0.500", "0.7500", "0.2500", "+", "yes"]
    assert second.split()[-4:] == ["0.400", "0.5000", "0.1250", "-"]


def test_no_edges_is_a_sentence(hand):
    model = replace(hand(), params=Params.independent(Nodes.mixed(2, (2, 3))), known_strengths=None)
    text = str(summarise(model))
    assert "0 of 6 possible" in text
    assert text.endswith("No edges: at this lam every column is independent of the others.")
    assert "No edges" in html(summarise(model))


def test_long_names_are_cut_in_the_middle_and_lines_stay_within_80(hand):
    long = "a_rather_long_name_of_a_survey_question_number_"
    names = tuple(long + str(k) for k in range(4))
    lines = str(summarise(hand(names=names))).splitlines()
    assert max(map(len, lines)) <= 80
    edges = [line for line in lines if line.startswith("a_rather")]
    assert len(edges) == 4
    assert len(set(edges)) == 4
    assert "cont-cont" in edges[0]


def test_only_the_strongest_edges_are_listed(hand):
    many = tuple(Edge(f"a{k}", "b", "continuous-continuous", 1.0, "+", 0.1, 1.0) for k in range(30))
    summary = replace(summarise(hand()), edges=many)
    assert "Edges, strongest first (12 of 30)" in str(summary)
    assert "a12" not in str(summary)
    assert html(summary).count("<tr>") == 12 + 1 + 7


def test_how_edges_vary_is_among_the_first(hand):
    many = [Edge(f"a{k}", "b", "continuous-continuous", 1.0, "+", 0.1, 1.0) for k in range(30)]
    many += [
        Edge(f"m{k}", "b", "continuous-continuous", 0.5 - 0.01 * k, "+", None, 0.5, moderator="age")
        for k in range(6)
    ]
    text = str(replace(summarise(hand()), edges=tuple(many)))
    assert "Edges, strongest first (8 of 30), and how they vary (4 of 6)" in text
    listed = [line.split()[0] for line in text.splitlines() if " b " in line]
    assert listed == [*(f"a{k}" for k in range(8)), "m0", "m1", "m2", "m3"]
    # Stronger than the edges, they are not only a third.
    text = str(replace(summarise(hand()), edges=tuple(many[30:] + many[:30])))
    assert "(6 of 30), and how they vary (6 of 6)" in text


def test_line_breaks_in_names_do_not_break_the_table():
    edge = Edge("two\nlines", "tab\there", "continuous-continuous", 0.5, "+", 0.2, 0.5)
    lines = edges_text([edge]).splitlines()
    assert len(lines) == 2
    assert r"two\nlines" in lines[1]


def test_wide_characters_keep_columns_aligned():
    text = table_text({"name": ["年齢", "abcd"], "n": [1, 2]})
    assert text.splitlines() == ["name  n", "年齢  1", "abcd  2"]


def test_numbers_flush_right_and_blanks_for_missing():
    text = table_text({"x": [1.0, float("nan"), 0.123456], "n": np.array([1, 20, 300])})
    assert text.splitlines() == ["     x    n", "     1    1", "         20", "0.1235  300"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        assert all(name == "style" for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_names_cannot_smuggle_html(hand):
    evil = "<script>alert('x')</script>"
    model = hand(names=(evil, "age", '"&<b>', "wage"))
    report = replace(model.report, notes=("<img src=x onerror=y>",), criterion="<i>EBIC</i>")
    summary = summarise(replace(model, report=report))
    for page in (html(summary), summary._repr_html_()):
        tags = Tags()
        tags.feed(page)
        tags.close()
        assert tags.open == []
        assert tags.seen.isdisjoint({"script", "img", "i", "b"})
        assert evil in tags.text
        assert "<img src=x onerror=y>" in tags.text


def test_html_colours_unsigned_edges_in_a_colour_of_their_own(hand):
    page = html(summarise(hand()))
    row = next(row for row in page.split("<tr>") if ">edu<" in row)
    assert "#009e73" in row
    assert "#0072b2" not in row.lower()


@pytest.mark.parametrize("name", ["color:black", "background:white", "color:#000"])
def test_html_takes_the_colours_of_the_notebook(hand, name):
    assert name not in html(summarise(hand()))


def test_the_summary_is_text(tmp_path):
    model = mg.from_params({"x": "continuous", "y": "continuous"}, {"precision": [[2, 1], [1, 2]]})
    summary = model.summary()
    assert summary.split("\n") == str(summary.values).split("\n")
    assert summary.startswith("Mixed graphical model")
    assert "Edges" in summary
    assert repr(summary) == str(summary)
    (tmp_path / "summary.txt").write_text(summary, encoding="utf-8")
    copy = pickle.loads(pickle.dumps(summary))
    assert copy == summary
    assert copy.values.edges == summary.values.edges
    assert summary._repr_html_() == html(summary.values)
