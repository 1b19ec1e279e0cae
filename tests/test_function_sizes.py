"""No function is over 60 lines or 15 branches, unless a comment says why: "Long, but ..."."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import skmargin

MAX_LINES, MAX_BRANCHES = 60, 15
SOURCES = Path(skmargin.__file__).parent
PYTHON = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case)
CPP = re.compile(r"\b(?:if|for|while|case|catch)\b|&&|\|\||\?")
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M
)
ANGLES = re.compile(r"<[^<>{};]*>")
ENDS = re.compile(r"\)[^=]*$")  # parameters, and what may follow them
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|concept)\b")


def blanked(text: str) -> str:
    """The text without comments, strings and directives, with the same lines."""
    return BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def cpp_functions(text: str) -> Iterator[tuple[str, int, int, str]]:
    """Name, first line and last line of every function outside functions, and its text."""
    code = blanked(text)
    inside: list[bool] = []  # of the open braces: whether a function lies between the brace and the file
    start, head = 0, 0
    for at, char in enumerate(code):
        if char == "{":
            before = ANGLES.sub("", ANGLES.sub("", code[head:at]))  # template parameters, two deep
            is_function = not any(inside) and not SCOPE.search(before.split("(")[0]) and bool(ENDS.search(before))
            if is_function:
                start = at
                found = re.findall(r"([\w~]+|operator\S+)\s*\(", before)
            inside.append(is_function or any(inside))
        elif char == "}":
            inside.pop()
            if code[start] == "{" and not any(inside) and start > 0:
                name = found[0] if found else "?"
                yield name, code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1, code[start:at]
                start = 0
        if char in "{};" and not any(inside):
            head = at + 1


def python_functions(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Name, first line, lines without the docstring and branches of every function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            yield node.name, node.lineno, lines, sum(isinstance(part, PYTHON) for part in ast.walk(node))


def too_long(path: Path) -> list[str]:
    """The functions of a file over the limits, but for those that give a reason."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    found = []
    if path.suffix == ".py":
        sizes = list(python_functions(text))
    else:
        sizes = [(n, a, b - a + 1, len(CPP.findall(code))) for n, a, b, code in cpp_functions(text)]
    for name, first, length, branches in sizes:
        if length <= MAX_LINES and branches <= MAX_BRANCHES:
            continue
        near = "\n".join(lines[max(0, first - 12) : first + 14])
        if "long, but" not in near.lower():
            found.append(f"{path.relative_to(SOURCES)}:{first} {name}: {length} lines, {branches} branches")
    return found


@pytest.mark.parametrize("suffix", ["py", "hpp", "cpp"])
def test_functions_are_short(suffix: str) -> None:
    """Every source file of the package."""
    paths = sorted(SOURCES.rglob(f"*.{suffix}"))
    assert len(paths) > 10
    assert [line for path in paths for line in too_long(path)] == []


def test_long_functions_are_found(tmp_path: Path) -> None:
    """Both readers, on a function of known size."""
    text = "namespace a {\nint b = 0;\nint f(int x) {\n" + "    if (x && b) x = '{';\n" * 8 + "}\n}\n"
    assert [(name, first, last) for name, first, last, _ in cpp_functions(text)] == [("f", 3, 12)]
    assert [len(CPP.findall(code)) for *_, code in cpp_functions(text)] == [16]
    assert list(python_functions("def f(x):\n    '''Say.'''\n    if x:\n        return 1\n")) == [("f", 1, 3, 1)]
