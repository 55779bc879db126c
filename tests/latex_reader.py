"""A strict reader of our LaTeX files: what TeX would stop at, without TeX."""

from __future__ import annotations

import re
from pathlib import Path

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*\n?")


def body(text: str) -> str:
    """The text without its comments."""
    return _COMMENT.sub(r"\1", text)


def problems(text: str) -> list[str]:
    """What is wrong with a file: braces, conditionals, environments, bare special characters."""
    out, plain = [], body(text)
    depth = 0
    for m in re.finditer(r"\\[A-Za-z@]+|\\.|[{}]", plain, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(m.group(), 0)
        if depth < 0:
            out.append("a closing brace too many")
            break
    out += ["an open brace"] if depth > 0 else []
    opened = len(re.findall(r"\\if(?:csname|defined|x|pdftex)\b", plain))
    if opened != len(re.findall(r"\\fi\b", plain)):
        out.append("conditionals that do not close")
    stack: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z]+)\}", plain):
        if kind == "begin":
            stack.append(name)
        elif not stack or stack.pop() != name:
            out.append(f"{name} ends where it did not begin")
    out += [f"{n} does not end" for n in stack]
    rest = re.sub(r"\\(?:newcommand\{\\auditset\}|DeclareRobustCommand\{\\auditnum\}).*", "", plain)
    rest = re.sub(r"\\errmessage\{[^}]*\}", "", rest)
    rest = re.sub(r"\\begin\{(?:tabular|longtable)\}\{.*\}", "", rest)
    rest = re.sub(r"\\(?:label|input|includegraphics)(?:\[[^\]]*\])?\{[^}]*\}", "", rest)
    rest = re.sub(r"\\auditset\{[^}]*\}", "", rest)
    rest = re.sub(r"\\ensuremath\{(?:[^{}]|\{[^{}]*\})*\}|\$[^$\n]*\$|\\.", "", rest)
    out += [f"a bare {c}" for c in "#$^~_" if c in rest]
    return out


def definitions(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Key -> LaTeX, and macro -> key, of a ``numbers.tex``."""
    values = dict(re.findall(r"^\\auditset\{([^{}]*)\}\{(.*)\}%", text, re.MULTILINE))
    short = dict(re.findall(r"^\\newcommand\{\\(\w+)\}\{\\auditnum\{([^{}]*)\}\}", text, re.MULTILINE))
    return values, short


def printed(tex: str) -> str:
    """What a number of ours looks like when it is set."""
    out = re.sub(r"\\ensuremath\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", tex)
    out = re.sub(r"(?:([\d.]+)\\times)?10\^\{-(\d+)\}", lambda m: f"{m.group(1) or 1}e−{m.group(2)}", out)
    out = out.replace("{[}", "[").replace("{]}", "]").replace("\\%", "%").replace("-", "−").replace("e−−", "e−")
    return out.replace("<1e", "< 1e")


def all_files(folder: Path) -> dict[str, str]:
    """Every LaTeX file of a folder: name -> text."""
    return {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.tex"))}
