"""Small mends after the moves: (file, text, new text), each text there exactly once."""
import sys
from pathlib import Path
ROOT = Path(sys.argv[1])
from patches import PATCHES  # noqa: E402
bad = 0
for file, old, new in PATCHES:
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(old) != 1:
        print("PATCH", file, text.count(old), repr(old[:70])); bad += 1
        continue
    path.write_text(text.replace(old, new), encoding="utf-8")
sys.exit(0)
