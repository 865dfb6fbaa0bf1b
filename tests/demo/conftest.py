"""What the tests of the conversion share."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.convert.kinds import kind_of
from demo.convert.limits import Limits
from demo.convert.request import Request
from demo.convert.summary import Found
from demo.convert.work import convert


@dataclass
class Result:
    found: Found
    text: str


@pytest.fixture
def put(tmp_path):
    """Write a file into a folder of its own."""

    def write(name: str, content: str | bytes) -> Path:
        path = Path(tmp_path, name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def become():
    """Do what the child does, in this process: for tests of content, which need no bounds."""

    def work(name: str, content: str | bytes, to: str, **limits) -> Result:
        source = io.BytesIO(content if isinstance(content, bytes) else content.encode())
        target = io.BytesIO()
        request = Request(name, kind_of(Path(name), name, to), to, -1, -1, -1, Limits(**limits))
        found = convert(request, source, target, lambda done, total: None)
        return Result(found, target.getvalue().decode())

    return work
