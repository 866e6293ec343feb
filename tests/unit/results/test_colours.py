"""Colours of pictures: contrast, colour-blind readers, and the same ones on the page."""

import itertools
import re

import numpy as np
import pytest

from mixedgm.families import KINDS
from mixedgm.report.document import page_file
from mixedgm.results.colours import GROUP_COLOURS, THEMES, mixed

# Viénot, Brettel and Mollon (1999) as Machado, Oliveira and Fernandes (2009) fitted it, in linear
# light, for readers without red and without green cones.
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "nobody": np.eye(3),
}


def linear(colour):
    value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(colour))


def contrast(one, other):
    """The ratio of WCAG 2."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def lab(light):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    share = xyz @ np.clip(light, 0.0, 1.0) / [0.9505, 1.0, 1.089]
    root = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16.0 / 116.0)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("name", THEMES)
def test_texts_and_lines_stand_out(name):
    theme = THEMES[name]
    assert contrast(theme.ink, theme.surface) > 7.0
    assert contrast(theme.muted, theme.surface) > 4.5
    for sign in ("+", "-", None):
        assert contrast(theme.sign(sign), theme.surface) > 3.0
    for kind in KINDS.values():
        assert contrast(theme.ink, theme.fill(kind)) > 4.5
        assert contrast(theme.outline(kind), theme.surface) > 3.0
    for colour in GROUP_COLOURS:
        assert contrast(theme.ink, theme.group(colour)) > 4.5
        area = mixed(theme.surface, colour, theme.area)
        assert contrast(theme.ink, area) > 7.0
        assert min(contrast(theme.name(colour), each) for each in (area, theme.surface)) > 4.5


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("reader", BLIND)
def test_signs_differ_for_every_reader(name, reader):
    theme, seen = THEMES[name], np.array(BLIND[reader])
    colours = [lab(seen @ linear(theme.sign(sign))) for sign in ("+", "-", None)]
    for one, other in itertools.combinations(colours, 2):
        assert np.linalg.norm(one - other) > 30.0


@pytest.mark.parametrize("name", THEMES)
def test_the_page_has_the_same_colours(name):
    start = ':root[data-theme="dark"] {' if name == "dark" else ":root {"
    style = page_file("page.css").split(start)[1].split("}")[0]
    page = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", style))
    theme = THEMES[name]
    for part in ("ink", "muted", "surface", "positive", "negative", "unsigned", "ring", "track"):
        assert page[part] == getattr(theme, part)
    assert (f"TINT = {theme.tint};" in page_file("colours.js")) == (name == "dark")
