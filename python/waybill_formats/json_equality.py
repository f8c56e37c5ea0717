"""Equality of JSON values, as JSON means it and not as Python does."""

from typing import Any, List, Tuple

from .shapes import is_number, to_double


def json_equal(left: Any, right: Any) -> bool:
    """Compares without recursion; numbers as doubles, and a boolean is not a number."""
    pairs: List[Tuple[Any, Any]] = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs.extend(zip(a, b))
        elif not _same_scalar(a, b):
            return False
    return True


def _same_scalar(a: Any, b: Any) -> bool:
    if is_number(a) and is_number(b):
        return to_double(a) == to_double(b)
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    return isinstance(a, str) and isinstance(b, str) and a == b
