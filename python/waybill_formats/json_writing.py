"""Compact JSON in the very bytes that ``JSON.stringify`` writes."""

import json
import math
import re
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from .errors import EnvelopeError
from .json_reading import MAX_DEPTH

_SURROGATE = re.compile("[\ud800-\udfff]")


class _Text:
    """Pieces of output, with a bound on their length: shared lists can unfold to any size."""

    def __init__(self, max_length: int) -> None:
        self.pieces: List[str] = []
        self.left = max_length

    def add(self, piece: str) -> None:
        self.left -= len(piece)
        if self.left < 0:
            raise EnvelopeError("too_large", "the envelope is larger than the limit")
        self.pieces.append(piece)


def write_json(value: Any, max_length: int) -> str:
    """Writes a JSON value compactly; what JSON cannot hold is refused with ``not_json``."""
    text = _Text(max_length)
    # A stack of its own: the interpreter's may be nearly used up by the caller.
    open_members: List[Tuple[Iterator[Tuple[str, Any]], str]] = [(iter([("", value)]), "")]
    while open_members:
        members, closing = open_members[-1]
        following = next(members, None)
        if following is None:
            text.add(closing)
            open_members.pop()
            continue
        before, member = following
        text.add(before)
        if not isinstance(member, (dict, list, tuple)):
            text.add(_scalar(member))
            continue
        if len(open_members) > MAX_DEPTH:
            raise EnvelopeError("not_json", f"the value is nested deeper than {MAX_DEPTH}")
        is_object = isinstance(member, dict)
        text.add("{" if is_object else "[")
        open_members.append((_fields(member), "}") if is_object else (_items(member), "]"))
    return "".join(text.pieces)


def _fields(value: Dict[Any, Any]) -> Iterator[Tuple[str, Any]]:
    comma = ""
    for key, member in value.items():
        if not isinstance(key, str):
            raise EnvelopeError("not_json", "the keys of a JSON object are strings")
        yield f"{comma}{_string(key)}:", member
        comma = ","


def _items(value: Sequence[Any]) -> Iterator[Tuple[str, Any]]:
    for index, member in enumerate(value):
        yield "," if index else "", member


def _scalar(value: Any) -> str:
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return _int(value)
    if isinstance(value, float):
        return _float(value)
    raise EnvelopeError("not_json", f"JSON cannot hold a {type(value).__name__}")


def _string(value: str) -> str:
    if not value.isascii() and _SURROGATE.search(value) is not None:
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    written = json.dumps(str(value), ensure_ascii=False)
    return _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", written)


def _int(value: int) -> str:
    try:
        float(value)
    except OverflowError as error:
        raise EnvelopeError("not_json", "the number is beyond what a double can hold") from error
    return int.__repr__(value)


def _float(value: float) -> str:
    """Writes a double as ECMAScript's ``Number::toString`` does."""
    if not math.isfinite(value):
        raise EnvelopeError("not_json", f"JSON cannot hold {value}")
    if value == 0:
        return "0"
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.digits times ten to the power of `point`.
    point = len(digits) - len(fraction) + int(exponent or "0")
    digits = digits.rstrip("0")
    return ("-" if value < 0 else "") + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{point - 1:+d}"
