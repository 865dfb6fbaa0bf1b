"""Conversion of real documents, bounded in time and memory.

Markdown, reStructuredText, CSV, HTML and plain text become a standalone HTML
page, JSON or readable text. The work is done by a child process, so that no
document can crash, block or bloat the caller. README.md beside this file has
the formats, the limits and the codes.
"""

from demo.convert.api import convert_file
from demo.convert.errors import Code, ConversionRefused, ConversionStopped, ConverterUnavailable, Trouble
from demo.convert.kinds import KINDS, TARGETS
from demo.convert.limits import Limits
from demo.convert.page import PAGE_POLICY
from demo.convert.summary import Summary

__all__ = [
    "KINDS",
    "PAGE_POLICY",
    "TARGETS",
    "Code",
    "ConversionRefused",
    "ConversionStopped",
    "ConverterUnavailable",
    "Limits",
    "Summary",
    "Trouble",
    "convert_file",
]
