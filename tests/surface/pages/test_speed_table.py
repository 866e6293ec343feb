"""Times in the documentation are those of the benchmark record."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def record() -> dict[str, str]:
    """What was measured -> the number, as the record has it."""
    lines = (ROOT / "benchmarks" / "results" / "table.md").read_text(encoding="utf-8").splitlines()
    return {what: measured for _, what, _, measured, _ in map(cells, lines)}


def test_numbers_of_the_page_are_in_the_record():
    text = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    known, shown = record(), re.findall(r"^\| set .*$", text, re.MULTILINE)
    assert len(shown) == 3
    for row in shown:
        table, *numbers = cells(row)
        name = table.split(":")[0]
        wanted = ["mixedgm, 20 lams", "yardstick / mixedgm"]
        expected = [known[f"{name}: {what}"] for what in wanted]
        for peer in ("adelie", "glmnet"):
            (found,) = [
                value
                for what, value in known.items()
                if what.startswith(f"{name}: mixedgm / nodewise {peer}")
            ]
            expected.append(found)
        assert numbers == expected
    assert known["1,000,000 rows: 50-point path"] in text.replace("\n", " ")
