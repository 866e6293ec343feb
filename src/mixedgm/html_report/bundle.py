"""JavaScript modules in files -> one script without imports, each module in a scope of its own."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["bundled", "page_file"]

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b", re.MULTILINE)
_FIRST = "main"


@cache
def page_file(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("mixedgm.html_report") / "page" / name).read_text(encoding="utf-8")


@cache
def bundled(first: str = _FIRST) -> str:
    """Return a module and all that it imports as one script, imported modules first.

    Modules name what they import in braces, and export functions, constants and classes.
    """
    parts: list[str] = []
    seen: set[str] = set()

    def add(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        text = page_file(f"{name}.js")
        for _, needed in _IMPORT.findall(text):
            add(needed)
        parts.append(_scoped(name, text))

    add(first)
    body = "\n".join(parts)
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{body}}})();\n'


def _scoped(name: str, text: str) -> str:
    r"""Return a module as a function that is called once, and returns what it exports.

    Examples
    --------
    >>> print(_scoped("b", 'import { x } from "./a.js";\nexport const y = x + 1;\n'))
    modules.b = (() => {
    const { x } = modules.a;
    const y = x + 1;
    return { y };
    })();
    """
    exports = ", ".join(_EXPORT.findall(text))
    text = _EXPORT.sub("", _IMPORT.sub(r"const {\1} = modules.\2;\n", text)).strip()
    if _OTHER.search(text):
        raise ValueError(f"{name}.js imports or exports in a form that is not bundled")
    return f"modules.{name} = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();\n"
