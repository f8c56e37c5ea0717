"""JSON by RFC 8259, to a bounded depth, whatever the text."""

import json
import math
import re
from typing import Any, Union

from .errors import EnvelopeError

MAX_DEPTH = 512
"""Nested arrays and objects, the outermost included."""

_LONGEST_INT = 300
"""Digits; longer ones are read as doubles, which also avoids the interpreter's own limit."""

_STRUCTURE = re.compile(r'["\[\]{}]')
_STRING_STOP = re.compile(r'["\\]')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def read_json(text: str) -> Any:
    """Parses JSON text; anything that is not JSON, too deep, or a number beyond the doubles is an ``EnvelopeError``."""
    if not _is_shallow(text):
        raise EnvelopeError("bad_json", f"the JSON is nested deeper than {MAX_DEPTH}")
    try:
        return json.loads(
            _with_whole_characters(text),
            parse_int=_read_int,
            parse_float=_read_float,
            parse_constant=_refuse_constant,
        )
    except ValueError as error:
        raise EnvelopeError("bad_json", f"not JSON: {error}") from error
    except RecursionError as error:
        raise EnvelopeError(
            "bad_json", "the JSON is nested deeper than the stack that is left can follow"
        ) from error


def _read_int(digits: str) -> Union[int, float]:
    return int(digits) if len(digits) <= _LONGEST_INT else _read_float(digits)


def _read_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is beyond the range of doubles")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _is_shallow(text: str) -> bool:
    """Counts brackets outside strings; of text that is no JSON the answer does not matter."""
    depth = 0
    at = 0
    while True:
        found = _STRUCTURE.search(text, at)
        if found is None:
            return True
        mark = found.group()
        at = found.end()
        if mark == '"':
            at = _string_end(text, at)
        elif mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return False
        else:
            depth -= 1


def _string_end(text: str, at: int) -> int:
    while True:
        found = _STRING_STOP.search(text, at)
        if found is None:
            return len(text)
        if found.group() == '"':
            return found.end()
        at = found.end() + 1


def _with_whole_characters(text: str) -> str:
    """Joins halves of a character that stand raw in the text, also one raw and one escaped."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    raw = _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)) if m.group(1) else m.group(), text)
    return raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
