"""The tree of before -> the tree of plan.py: files moved and joined, every import rewritten.  python move.py ROOT"""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from plan import DROPPED, FUNCTIONS, GONE, INITS, PLAN, RENAMES  # noqa: E402
import tests_plan  # noqa: E402

ROOT = Path(sys.argv[1]).resolve()
PKG = ROOT / "src" / "mixedgm"
M = "mixedgm"
problems: list[str] = []


def name_of(path: Path) -> str:
    name = ".".join(path.relative_to(PKG.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


FILES = {name_of(f): f for f in sorted(PKG.rglob("*.py"))}
MAP: dict[str, str] = {m: m for m in FILES}
for new, olds, _ in PLAN:
    for old in olds:
        assert f"{M}.{old}" in FILES, old
        MAP[f"{M}.{old}"] = f"{M}.{new}"
# folders move with their __init__
for old, new in list(MAP.items()):
    if FILES[old].name == "__init__.py" and old != new:
        for m in FILES:
            if m.startswith(old + ".") and MAP[m] == m:
                MAP[m] = new + m.removeprefix(old)
JOINED = {f"{M}.{new}": [f"{M}.{o}" for o in olds] for new, olds, _ in PLAN}
FIRST = {f"{M}.{new}": first for new, _, first in PLAN}
PACKAGES = {m for m, f in FILES.items() if f.name == "__init__.py"}


def target(module: str) -> str:
    return MAP.get(module, module)


def rewritten_import(node: ast.ImportFrom, here: str | None, indent: str) -> list[str]:
    """New statements for one import; `here` is the new name of the file it stands in."""
    by: dict[str, list[str]] = {}
    for alias in node.names:
        full = f"{node.module}.{alias.name}"
        if full in FILES and (node.module, alias.name) not in FUNCTIONS:
            new = target(full)
            parent, _, leaf = new.rpartition(".")
            if new == here:
                problems.append(f"{here}: module import of itself {full}")
            local = alias.asname or alias.name
            by.setdefault(parent, []).append(f"{leaf} as {local}" if alias.asname or leaf != local else leaf)
            continue
        new = target(node.module)
        renamed = RENAMES.get((node.module, alias.name), alias.name)
        if new == here:
            if alias.asname and alias.asname != renamed:
                problems.append(f"{here}: `{renamed}` is called {alias.asname}")
            continue
        local = alias.asname or alias.name
        by.setdefault(new, []).append(f"{renamed} as {local}" if alias.asname or renamed != local else renamed)
    return [f"{indent}from {module} import {', '.join(names)}" for module, names in by.items()]


DOTTED = re.compile(r"\bmixedgm((?:\.[A-Za-z_]\w*)+)")


def rewritten_dotted(text: str) -> str:
    def change(match: re.Match[str]) -> str:
        parts = match[0].split(".")
        for k in range(len(parts), 1, -1):
            name = ".".join(parts[:k])
            if k == len(parts) - 1 and tuple([name, parts[k]]) in FUNCTIONS:
                pass
            if name in MAP:
                rest = parts[k:]
                if rest and (name, rest[0]) in RENAMES:
                    rest[0] = RENAMES[name, rest[0]]
                return ".".join([MAP[name], *rest])
        return match[0]

    return DOTTED.sub(change, text)


def relative(module: str, init: bool) -> str:
    path = module.removeprefix(M + ".").replace(".", "/")
    return path + ("/__init__.py" if init else ".py")


PATHS: dict[str, str] = {}
for old, new in MAP.items():
    if old != new:
        PATHS[FILES[old].relative_to(PKG).as_posix()] = relative(new, old in PACKAGES)
AT = r"(?<![\w/.-])"
SLASHED = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.py)(?!\w)")


def rewritten_paths(text: str, roots: bool) -> str:
    def change(match: re.Match[str]) -> str:
        path = match[1]
        if path in tests_plan.ALL:
            return tests_plan.ALL[path]
        for front in ("src/mixedgm/", "mixedgm/", ""):
            if path.startswith(front):
                inner = path.removeprefix(front)
                if inner in PATHS and ("/" in inner or front or roots):
                    return front + PATHS[inner]
        return path

    return SLASHED.sub(change, text)


def imports_of(tree: ast.Module) -> list[ast.ImportFrom]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]


def rewritten(text: str, here: str | None, file: str) -> str:
    """Python source with new imports and dotted names."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    changes: list[tuple[int, int, list[str]]] = []
    for node in imports_of(tree):
        if node.level == 0 and node.module and node.module.split(".")[0] == M:
            indent = " " * node.col_offset
            first = lines[node.lineno - 1]
            if first[: node.col_offset].strip() or ";" in first:
                problems.append(f"{file}:{node.lineno} odd import")
                continue
            tail = re.search(r"#.*", "".join(lines[node.lineno - 1 : node.end_lineno]))
            new = rewritten_import(node, here, indent)
            if tail and new:
                new[-1] += "  " + tail[0]
            changes.append((node.lineno - 1, node.end_lineno or node.lineno, new))
    for start, end, new in sorted(changes, reverse=True):
        lines[start:end] = ["\0" + line + "\n" for line in new]  # \0: already new
    out = []
    for line in lines:
        out.append(line[1:] if line.startswith("\0") else line)
    # dotted names, but not in lines made above
    result = "".join(
        line[1:] if line.startswith("\0") else rewritten_dotted_line(line) for line in lines
    )
    return result


def rewritten_dotted_line(line: str) -> str:
    # doctests and code strings: from a.b import c, as text
    match = re.match(r"^(.*?\b)from (mixedgm(?:\.\w+)*) import ([\w, ]+?)((?: as \w+)?)(\s*(?:[\"'\\;].*)?)$", line.rstrip("\n"))
    if match and "," not in match[3] and "from" in line:
        node = ast.parse(f"from {match[2]} import {match[3]}{match[4]}").body[0]
        assert isinstance(node, ast.ImportFrom)
        new = rewritten_import(node, None, "")
        return match[1] + new[0] + rewritten_dotted(match[5]) + "\n"
    return rewritten_dotted(line)


def parts_of(text: str, module: str) -> tuple[str, list[str], list[str], str]:
    """Docstring, top imports, imports for typing, and the rest of a module."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    doc = ast.get_docstring(tree, clean=False) or ""
    imports: list[str] = []
    typing: list[str] = []
    end = tree.body[0].end_lineno if doc else 0
    done = False
    for node in tree.body[1 if doc else 0 :]:
        source = "".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if done:
                problems.append(f"{module}:{node.lineno} late import")
                continue
            imports.append(source)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not done:
            typing += lines[node.lineno : node.end_lineno]
        else:
            done = True
            continue
        end = node.end_lineno
    return doc, imports, typing, "".join(lines[end:])


def without(text: str, module: str, names: set[str]) -> str:
    """Source without the assignments to some names at its top level (and their docstrings)."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    for node, after in reversed(list(zip(tree.body, [*tree.body[1:], None], strict=True))):
        target_ = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target_, ast.Name) and target_.id in names:
            end = node.end_lineno
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                end = after.end_lineno
            lines[node.lineno - 1 : end] = []
    return "".join(lines)


def renamed_in(text: str, module: str) -> str:
    for (owner, old), new in RENAMES.items():
        if owner == module:
            text = re.sub(rf"(?<![\w.\"']){old}(?!\w)", new, text)
    return text


def joined(new: str, olds: list[str]) -> str:
    docs, imports, typing, bodies = [], [], [], []
    bound: dict[str, str] = {}
    brought: dict[str, str] = {}
    for old in olds:
        text = FILES[old].read_text(encoding="utf-8")
        text = renamed_in(text, old)
        names = {"__all__"} | {n for m, n in DROPPED if m == old}
        aliases = {n for n in ("Floats", "Mask") if re.search(rf"^{n} = ", text, flags=re.M)}
        text = without(text, old, names | (aliases & set(bound)))
        tree = ast.parse(text)
        for node in tree.body:
            names = []
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            for name in names:
                if name in bound and name != "__all__":
                    problems.append(f"{new}: {name} in {bound[name]} and {old}")
                if name == "__all__":
                    problems.append(f"{new}: __all__ in {old}")
                bound[name] = old
        text = rewritten(text, new, old)
        text = text_without_empty_blocks(text)
        doc, own, types, body = parts_of(text, old)
        docs.append(doc)
        for line in own:
            node = ast.parse(line).body[0]
            if isinstance(node, ast.ImportFrom):
                kept = []
                for alias in node.names:
                    local = alias.asname or alias.name
                    source = f"{node.module}.{alias.name}"
                    if brought.setdefault(local, source) == source:
                        kept.append(f"{alias.name} as {alias.asname}" if alias.asname else alias.name)
                    else:
                        problems.append(f"{new}: {local} from {brought[local]} and {source}")
                line = f"from {node.module} import {', '.join(kept)}\n" if kept else ""
            imports.append(line)
        typing += types
        bodies.append(body.strip("\n"))
    first = FIRST[new] or docs[0].split("\n")[0]
    doc = first
    for k, each in enumerate(docs):
        line, _, rest = each.partition("\n")
        if rest.strip():
            doc += "\n" + ("" if k == 0 else f"\n{line}\n") + rest.rstrip()
    if "\n" in doc:
        doc = doc.rstrip() + "\n"
    quote = 'r"""' if "\\" in doc else '"""'
    out = f'{quote}{doc}"""\n\n' + "".join(dict.fromkeys(imports))
    if typing:
        unique = list(dict.fromkeys(typing))
        out += "\nif TYPE_CHECKING:\n" + "".join(unique)
    return out + "\n\n" + "\n\n\n".join(bodies) + "\n"


def text_without_empty_blocks(text: str) -> str:
    """An `if TYPE_CHECKING:` whose imports are gone goes."""
    return re.sub(r"^if TYPE_CHECKING:\n(?=(\s*\n)*(\S|\Z))", "", text, flags=re.M)


def main() -> None:
    old_tree = {m: f for m, f in FILES.items()}
    written: dict[Path, str] = {}
    members = {o for olds in JOINED.values() for o in olds}
    for new, olds in JOINED.items():
        if olds[0] in PACKAGES:
            text = rewritten(FILES[olds[0]].read_text(encoding="utf-8"), new, olds[0])
            if FIRST[new]:
                text = f'"""{FIRST[new]}"""\n'
            written[PKG / relative(new, True)] = text
        elif len(olds) == 1:
            text = without(FILES[olds[0]].read_text(encoding="utf-8"), olds[0], {"__all__"})
            text = rewritten(text, new, olds[0])
            written[PKG / relative(new, False)] = text
        else:
            written[PKG / relative(new, False)] = joined(new, olds)
    for module, file in old_tree.items():
        if module in members or module.removeprefix(M + ".") in GONE:
            continue
        init = file.name == "__init__.py"
        path = PKG / relative(MAP[module], init) if module != M else file
        text = file.read_text(encoding="utf-8")
        text = text if init else without(text, module, {"__all__"})
        written[path] = rewritten(text, MAP[module], module)
    for name, sentence in INITS.items():
        written[PKG / name.replace(".", "/") / "__init__.py"] = f'"""{sentence}"""\n'
    # folders of data
    data = [(f, PKG / target_folder(f)) for f in PKG.rglob("*")
            if f.is_file() and f.suffix not in (".py", ".pyc")]
    contents = [(f, new, f.read_bytes()) for f, new in data]
    for file in FILES.values():
        file.unlink()
    for f, new, content in contents:
        f.unlink()
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_without_empty_blocks(text), encoding="utf-8")
    for folder in sorted(PKG.rglob("*"), reverse=True):
        if folder.is_dir() and folder.name == "__pycache__":
            shutil.rmtree(folder)
    for folder in sorted(PKG.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    others()


def target_folder(f: Path) -> Path:
    rel = f.relative_to(PKG)
    parts = rel.parts
    for k in range(len(parts) - 1, 0, -1):
        module = M + "." + ".".join(parts[:k])
        if module in PACKAGES:
            return Path(*MAP[module].split(".")[1:], *parts[k:])
    return rel


def others() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    moved = tests_plan.MOVES
    for name in tracked:
        path = ROOT / name
        if not name or name.startswith(("src/mixedgm/", ".moves/")) or not path.is_file():
            continue
        if path.suffix not in (".py", ".md", ".rst", ".toml", ".json", ".yml", ".yaml", ".cfg", ".js", ".ts", ".mjs", "") and path.name != "Makefile":
            continue
        if path.suffix == ".json" and "mutations" not in name and path.stat().st_size > 100_000:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if "CHANGELOG" in name:
            continue
        new = text
        if path.suffix == ".py":
            new = rewritten(new, None, name)
        else:
            new = "".join(rewritten_dotted_line(x) if not x.endswith("\r\n") else x for x in new.splitlines(keepends=True)) if "mixedgm" in new else new
            if text and not text.endswith("\n") and new.endswith("\n"):
                new = new[:-1]
        roots = name.startswith(("tools/mutations", "tests/house", "docs/architecture", "CONTRIBUTING"))
        new = rewritten_paths(new, roots)
        for before, after in tests_plan.DOTTED.items():
            new = re.sub(rf"\b{re.escape(before)}\b", after, new)
        new = tests_plan.special(name, new)
        if new != text:
            path.write_text(new, encoding="utf-8")
    for before, after in moved.items():
        if (ROOT / before).exists():
            (ROOT / after).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", before, after], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
    print("\n".join(problems))
