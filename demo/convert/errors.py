"""How a conversion can end without a result."""

from enum import StrEnum


class Code(StrEnum):
    """Why a document was refused: the document's fault, so trying again changes nothing."""

    MISSING = "DOCUMENT_VALIDATION_MISSING"  # no such file, not a regular file, or not readable
    UNSUPPORTED = "DOCUMENT_VALIDATION_UNSUPPORTED"  # unknown extension, unknown target
    EMPTY = "DOCUMENT_VALIDATION_EMPTY"  # nothing but white space
    BINARY = "DOCUMENT_VALIDATION_BINARY"  # a known signature, or a NUL byte
    ENCODING = "DOCUMENT_VALIDATION_ENCODING"  # neither UTF-8 nor UTF-16 with a byte order mark
    TOO_LARGE = "DOCUMENT_VALIDATION_TOO_LARGE"  # source, line, columns, result or memory
    TOO_DEEP = "DOCUMENT_VALIDATION_TOO_DEEP"  # nested beyond the limit
    TOO_SLOW = "DOCUMENT_VALIDATION_TOO_SLOW"  # still working when its time was up
    FAILED = "DOCUMENT_CONVERSION_FAILED"  # a library failed or crashed on it


class Trouble(StrEnum):
    """Why the converter could not work: the machine's fault, so trying again may help."""

    UNAVAILABLE = "DOCUMENT_CONVERTER_UNAVAILABLE"  # could not start, no disk space, killed from outside
    TIMEOUT = "DOCUMENT_CONVERTER_TIMEOUT"  # time was up, but it had hardly been given a processor


class ConversionRefused(Exception):
    """This document cannot be converted; the message says why in one sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = Code(code)
        self.message = message


class ConverterUnavailable(Exception):
    """The converter could not do its work; the document may be fine."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = Trouble(code)
        self.message = message


class ConversionStopped(Exception):
    """The caller asked for the conversion to stop, and it has."""
