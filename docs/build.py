"""The pages, the docstrings and the examples -> the site in ``build/site``, or what is wrong.

``make docs`` runs it.  Everything that an earlier build left is removed first; warnings of Sphinx
are errors.  What was built is then read again: every link within the site must lead somewhere, and
no page may load anything from elsewhere.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "build" / "site"
MADE_BY_SPHINX = ("generated", "gallery")
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself, without a click."""
FETCHED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest"}


def main() -> int:
    """Build the site and check it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-gallery", action="store_true", help="do not run the examples")
    parser.add_argument("--jobs", default="1", help="processes that write pages")
    options = parser.parse_args()
    kept = TARGET.parent / "doctrees"
    for folder in (TARGET, kept, *(HERE / name for name in MADE_BY_SPHINX)):
        shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", options.jobs]
    if options.without_gallery:
        command += ["-D", "plot_gallery=0"]
    built = subprocess.run([*command, "-d", kept, HERE, TARGET])
    if built.returncode:
        return built.returncode
    faults = site_faults(TARGET)
    for fault in faults:
        print(fault, file=sys.stderr)
    pages = len(list(TARGET.rglob("*.html")))
    print(f"{pages} pages in {TARGET / 'index.html'}; {len(faults)} faults")
    return 1 if faults else 0


class Page(HTMLParser):
    """The anchors of a page, where it points, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one tag says."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        fetched = tag != "link" or set(values.get("rel", "").split()) & FETCHED_LINKS
        if tag in LOADED and fetched and LOADED[tag] in values:
            self.loads.append(values[LOADED[tag]])


def site_faults(site: Path) -> list[str]:
    """Return broken links within the site, and everything that would need a network."""
    files = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    faults = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    faults.append(f"{where} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists():
                faults.append(f"{where} points to {link}, which does not exist")
            elif parts.fragment and known and unquote(parts.fragment) not in known.anchors:
                faults.append(f"{where} points to {link}, where there is no such heading")
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        found = re.findall(r"(?:url\(|@import)\s*['\"]?\s*(https?:[^'\")\s]*|//[^'\")\s]*)", text)
        faults += [f"{style.relative_to(site)} loads {address}" for address in found]
    return sorted(faults)


if __name__ == "__main__":
    sys.exit(main())
