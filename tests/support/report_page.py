"""A report -> the content that its page reads, and its parts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any


def content_of(page: str) -> Any:
    """What the script of the page reads."""
    found = re.findall(r'<script type="application/json" id="content">(.*?)</script>', page, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def read_content(file: Path) -> Any:
    return content_of(file.read_text(encoding="utf-8"))


def table(content: Any, key: str) -> dict[str, list[Any]]:
    """The cells of one table, by column."""
    (one,) = (each for each in content["tables"] if each["key"] == key)
    return {column["name"]: column["cells"] for column in one["columns"]}


def sha256(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
