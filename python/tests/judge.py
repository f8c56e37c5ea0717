"""Judges cases for the comparison between languages: JSON lines in, JSON lines out.

A case is ``{"kind": "block", "text": …}`` or ``{"kind": "result", "json": …}`` with the options of the vectors.
"""

import json
import math
import sys
from typing import Any, Dict

from tests.vectors import options_of
from waybill_formats import EnvelopeError, decode_tool_result, parse_envelope_block


def judge(case: Dict[str, Any]) -> Dict[str, Any]:
    """Reads one case; anything but an ``EnvelopeError`` is a bug, and reported as one."""
    kind = case.pop("kind")
    subject = case.pop("text" if kind == "block" else "json")
    try:
        return _block(subject, case) if kind == "block" else _result(json.loads(subject), case)
    except EnvelopeError as error:
        return {"code": error.code}
    except Exception as error:  # noqa: BLE001
        return {"bug": f"{type(error).__name__}: {error}"}


def _block(text: str, case: Dict[str, Any]) -> Dict[str, Any]:
    envelope = parse_envelope_block(text, **options_of(case))
    return {
        "payload": envelope["payload"],
        "meta": envelope["meta"],
        "extra": envelope.extra,
        "tolerated": envelope.tolerated,
    }


def _result(result: Any, case: Dict[str, Any]) -> Dict[str, Any]:
    decoded = decode_tool_result(result, **options_of(case))
    return {
        "format": decoded.format,
        "isError": decoded.is_error,
        "obtained": decoded.obtained,
        "reason": decoded.fallback_reason,
        "candidates": list(decoded.candidates),
        "data": decoded.data,
        "text": decoded.text,
    }


def _canonical(value: Any) -> str:
    """Writes the answer as every JSON reader can take it: infinite numbers as ones that overflow."""
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_canonical(value[key])}" for key in value) + "}"
    return json.dumps(value)


def main() -> None:
    """Answers every line at once, so that the other side can take turns."""
    sys.setrecursionlimit(10_000)
    for line in sys.stdin.buffer:
        sys.stdout.write(_canonical(judge(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
