"""Reading one envelope block: a prefix with a version, then base64 of JSON."""

import re
from typing import Any, Callable, Dict, List, Optional, Union

from .base64_text import decode_base64, decoded_size
from .errors import EnvelopeError
from .json_reading import read_json

PREFIX = re.compile(r"__ENVELOPE_V([1-9][0-9]{0,8})__:")
"""What every envelope block begins with; its number is the version."""

MAX_BYTES = 16 * 1024 * 1024
"""Default limit on the decoded size."""

VERSION = 1
"""The version that is written, and the one that is read unless the caller decides otherwise."""

_MAX_SAFE = 2**53 - 1

_BOM = b"\xef\xbb\xbf"


class Envelope(Dict[str, Any]):
    """What a block held: the keys ``payload`` and ``meta``, and as attributes what came beside them.

    ``extra`` holds other top-level fields; ``tolerated`` names what lenient reading put up with.
    """

    def __init__(self, payload: Any, meta: Dict[str, Any], extra: Dict[str, Any], tolerated: List[str]) -> None:
        super().__init__(payload=payload, meta=meta)
        self.extra = extra
        self.tolerated = tolerated

    @property
    def payload(self) -> Any:
        return self["payload"]

    @property
    def meta(self) -> Dict[str, Any]:
        return self["meta"]


def parse_envelope_block(
    text: str,
    *,
    lenient: bool = False,
    max_bytes: int = MAX_BYTES,
    accept_version: Optional[Callable[[int], bool]] = None,
) -> Envelope:
    """Reads an envelope block; whatever is wrong with it is an ``EnvelopeError`` with a code."""
    found = PREFIX.match(text) if isinstance(text, str) else None
    if found is None:
        raise EnvelopeError("not_an_envelope", "not an envelope block")
    version = int(found.group(1))
    accepts = accept_version if accept_version is not None else _is_current
    if not accepts(version):
        raise EnvelopeError("unsupported_version", f"envelope version {version} is not supported")
    encoded = text[found.end() :]
    if decoded_size(encoded) > max_bytes:
        raise EnvelopeError("too_large", f"the envelope is larger than {max_bytes} bytes")
    tolerated: List[str] = []
    decoded = decode_base64(encoded, lenient, tolerated)
    value = read_json(_read_utf8(decoded, lenient, tolerated))
    return _checked(value, version, accepts, tolerated)


def _is_current(version: int) -> bool:
    return version == VERSION


def _read_utf8(decoded: bytes, lenient: bool, tolerated: List[str]) -> str:
    if decoded.startswith(_BOM):
        if not lenient:
            raise EnvelopeError("bad_utf8", "the envelope begins with a byte order mark")
        tolerated.append("bom")
        decoded = decoded[len(_BOM) :]
    try:
        return decoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EnvelopeError("bad_utf8", f"the envelope is not UTF-8: {error.reason}") from error


def _checked(value: Any, version: int, accepts: Callable[[int], bool], tolerated: List[str]) -> Envelope:
    if not isinstance(value, dict) or "payload" not in value:
        raise EnvelopeError("bad_shape", "the envelope is not an object with a payload")
    meta = value.get("meta")
    if not isinstance(meta, dict):
        raise EnvelopeError("bad_shape", "the envelope's meta is not an object")
    if not isinstance(meta.get("tool"), str) or not isinstance(meta.get("ts"), str):
        raise EnvelopeError("bad_shape", "the envelope's meta lacks the string tool or ts")
    given = meta.get("version")
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise EnvelopeError("bad_shape", "the envelope's meta.version is not a number")
    if given != version and not (_is_later(given, version) and accepts(int(given))):
        raise EnvelopeError("version_mismatch", f"the prefix says version {version}, meta says {given}")
    extra = {key: value[key] for key in value if key not in ("payload", "meta")}
    return Envelope(value["payload"], meta, extra, tolerated)


def _is_later(given: Union[int, float], prefix: int) -> bool:
    """Tells whether meta may say another version than the prefix: a later one, behind the prefix of version 1."""
    return prefix == VERSION and VERSION < given <= _MAX_SAFE and given == int(given)
