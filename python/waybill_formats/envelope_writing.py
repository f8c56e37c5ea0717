"""Writing envelope blocks and the tool results that carry them."""

import base64
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, Optional

from .envelope_block import MAX_BYTES, VERSION
from .errors import EnvelopeError
from .json_writing import write_json
from .shapes import is_error_payload


def encode_envelope_block(
    payload: Any,
    tool: str,
    ts: Optional[str] = None,
    *,
    meta: Optional[Mapping[str, Any]] = None,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Writes an envelope block; ``ts`` defaults to now, ``meta`` holds fields beyond tool, ts and version."""
    ts = _now() if ts is None else ts
    if not isinstance(tool, str) or not isinstance(ts, str):
        raise EnvelopeError("bad_shape", "tool and ts must be strings")
    fields: Dict[str, Any] = {"tool": tool, "ts": ts, "version": VERSION}
    for key, value in (meta or {}).items():
        if key in fields:
            raise EnvelopeError("bad_shape", f"meta.{key} has an argument of its own or is fixed")
        fields[key] = value
    written = write_json({"payload": payload, "meta": fields}, max_bytes).encode("utf-8")
    if len(written) > max_bytes:
        raise EnvelopeError("too_large", f"the envelope is larger than {max_bytes} bytes")
    return f"__ENVELOPE_V{VERSION}__:{base64.b64encode(written).decode('ascii')}"


def to_tool_result(summary_markdown: str, payload: Any, meta: Mapping[str, Any]) -> Dict[str, Any]:
    """Makes the two-block tool result; ``meta`` needs ``tool``, may have ``ts``, and keeps what else it holds."""
    if not isinstance(summary_markdown, str):
        raise EnvelopeError("bad_shape", "the summary must be a string")
    rest = dict(meta)
    tool, ts, version = rest.pop("tool", None), rest.pop("ts", None), rest.pop("version", VERSION)
    if isinstance(version, bool) or version != VERSION:
        raise EnvelopeError("unsupported_version", f"only version {VERSION} can be written")
    block = encode_envelope_block(payload, tool, ts, meta=rest)
    texts = (summary_markdown, block)
    result: Dict[str, Any] = {"content": [{"type": "text", "text": text} for text in texts]}
    if is_error_payload(payload):
        result["isError"] = True
    return result


def _now() -> str:
    now = datetime.now(timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
