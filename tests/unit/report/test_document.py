"""Modules of the page become one script; text becomes JSON that is not markup."""

import re
from pathlib import Path

import pytest

from mixedgm.report import document as bundle
from mixedgm.report.plain import embedded, number, shown, value

PAGE = Path(bundle.__file__).parent / "page"


def test_every_module_is_in_the_script_after_what_it_imports():
    script = bundle.bundled()
    places = {name: at for at, name in enumerate(re.findall(r"^modules\.(\w+) = ", script, re.M))}
    assert set(places) == {file.stem for file in PAGE.glob("*.js")}
    for file in PAGE.glob("*.js"):
        for needed in re.findall(r'from "\./(\w+)\.js"', file.read_text(encoding="utf-8")):
            assert places[needed] < places[file.stem]


def test_no_module_makes_markup_of_text():
    script = bundle.bundled()
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in script
    assert "</script" not in script
    assert "fetch(" not in script
    assert "localStorage" not in script


def test_other_forms_of_imports_are_refused():
    with pytest.raises(ValueError, match="in a form that is not bundled"):
        bundle._scoped("x", 'import * as y from "./y.js";\n')


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "&amp;", "\u2028", "\x00", "\ud800"])
def test_embedded_text_is_not_markup(text):
    assert re.fullmatch(r'"[^<>&\u2028\u2029\x00]*"', embedded(text))
    assert embedded(text).isascii()


def test_values():
    assert shown("a\u202eb") == "a\\u202eb"
    assert number(float("inf")) is None
    assert number(123456.7) == 123500
    assert value(True) is True
    assert value(float("nan")) is None
