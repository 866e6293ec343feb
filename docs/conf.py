"""What Sphinx needs to know to make the site; ``make docs`` builds it."""

from __future__ import annotations

import os
import re
import tomllib
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

project = "mixedgm"
author = "mixedgm developers"
copyright = "mixedgm developers; BSD-3-Clause"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
# The gallery's table of run times loads scripts from elsewhere.
exclude_patterns = ["examples", "studies", "images", "**sg_execution_times.rst"]
templates_path = ["_templates"]

# Pages are plain Markdown that also reads well in the repository.  Formulas are text, so that no
# script has to be loaded to show them.
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "text"

# Docstrings are numpydoc; a word in single backquotes is a name of the package, or plain code.
default_role = "py:obj"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"NetworkDrawing|matplotlib|Text|Axes",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = f"mixedgm {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

# Files at the top of the repository -> pages of the site.  Each page is a file in this folder that
# only points to its origin, whose text takes its place here.
ORIGINS = {
    "contributing": "CONTRIBUTING.md",
    "changes": "CHANGELOG.md",
    "security": "SECURITY.md",
    "benchmarks": "benchmarks/README.md",
    "benchmark_record": "benchmarks/results/table.md",
    "stress": "stress/README.md",
    "stress_record": "stress/record/table.md",
}
LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def read_page(app: Any, page: str, source: list[str]) -> None:
    """Put the text of its origin in place of a page that only points to it, and mend links."""
    origin = ROOT / ORIGINS[page] if page in ORIGINS else Path(app.env.doc2path(page))
    if origin.suffix != ".md":
        return
    if page in ORIGINS:
        text = origin.read_text(encoding="utf-8")
        source[0] = text if text.startswith("# ") else f"{source[0].splitlines()[0]}\n\n{text}"
    source[0] = LINK.sub(
        lambda link: f"]({target(link[1], origin, page)}{link[2] or ''})", source[0]
    )


def target(link: str, origin: Path, page: str) -> str:
    """Return where a link of a file in the repository leads to from a page of the site."""
    file = (origin.parent / link).resolve()
    if not file.exists():
        return link
    inside = str(file.relative_to(ROOT))
    moved = {f"{name}.md": source for name, source in ORIGINS.items()}
    name = next((name for name, source in moved.items() if source == inside), None)
    if inside == "docs/examples/README.rst":
        name = "gallery/index.rst"
    elif inside.startswith("docs/examples/"):
        name = f"gallery/{file.stem}.rst"
    wanted = ROOT / "docs" / name if name else file
    return os.path.relpath(wanted, (ROOT / "docs" / page).parent)


def only_ours(_app: Any, _what: str, _name: str, member: Any, skip: bool, _options: Any) -> bool:
    """Leave out what classes have from scikit-learn, and old names."""
    foreign = str(getattr(member, "__module__", "")).startswith("sklearn")
    return skip or foreign or str(member.__doc__).startswith("Old name of")


def short_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> str:
    """Show a warning of an example without the place of the file on the machine that built it."""
    return f"{category.__name__}: {message}\n"


def setup(app: Any) -> None:
    """Register what is not an extension of its own."""
    warnings.formatwarning = short_warning
    app.connect("source-read", read_page)
    app.connect("autodoc-skip-member", only_ours)
