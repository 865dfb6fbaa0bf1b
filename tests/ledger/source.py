"""Reads the product's own source: its files, its texts that are not docstrings, its calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("config", "jobs", "console", "demo", "client")


@cache
def files() -> tuple[Path, ...]:
    """Return the product's Python files, without migrations and without the provider, which is the outside
    world."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(path for path in found if not {"migrations", "provider"} & set(path.parts))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def texts(path: Path) -> Iterator[str]:
    """Yield every string of a file that is no docstring, the constant parts of f-strings included."""
    documentation = {
        id(node.value)
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def attributes(path: Path) -> Iterator[str]:
    """Yield every attribute name that a file uses."""
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            yield node.attr


def imported(path: Path) -> dict[str, str]:
    """Return what a file imports by `from … import`, by the name that it gives to it."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def used(path: Path) -> set[str]:
    """Return what a file uses of its imports: `settle.commit` as jobs.ledger.settle.commit."""
    known = imported(path)
    found = set(known.values())
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            found.add(f"{known[node.value.id]}.{node.attr}")
    return found
