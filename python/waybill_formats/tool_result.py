"""Telling which format a tool result is in, and what its data are."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .base64_text import utf16_length
from .envelope_block import MAX_BYTES, PREFIX, parse_envelope_block
from .errors import EnvelopeError
from .json_equality import json_equal
from .json_reading import read_json
from .shapes import is_error_payload, is_response_envelope, is_status_envelope, is_tiered_envelope

_CONTRACTS: Tuple[Tuple[str, Callable[[Any], bool]], ...] = (
    ("tiered-envelope", is_tiered_envelope),
    ("status-envelope", is_status_envelope),
    ("response-envelope", is_response_envelope),
)
_RESULT_KEY = "dev.waybill/result"


@dataclass(frozen=True)
class DecodedToolResult:
    """What a tool result turned out to be."""

    format: str
    """tool-envelope, tiered-envelope, status-envelope, response-envelope, mcp or ambiguous."""
    data: Any
    """The payload or data of the format; None for an ambiguous result and for an error payload."""
    obtained: str
    """Where the data stood: envelope-block, structured-content, contract-json, content or return-value."""
    is_error: bool
    fallback_reason: Optional[str]
    """Code of the first envelope block that could not be read."""
    candidates: Tuple[str, ...]
    """The formats an ambiguous result could be; empty otherwise."""
    text: str
    """The text blocks for people, joined by blank lines."""
    error: Optional[Dict[str, Any]] = None
    """The payload of a tool envelope that says it is an error."""


class _Reading(NamedTuple):
    data: Any
    obtained: str
    is_error: bool


class _Blocks(NamedTuple):
    """The envelope blocks of a result: at most two readings, which is enough to tell that they conflict."""

    readings: List[_Reading]
    conflict: bool
    reason: Optional[str]


def decode_tool_result(
    result: Any,
    *,
    lenient: bool = False,
    max_bytes: int = MAX_BYTES,
    accept_version: Optional[Callable[[int], bool]] = None,
) -> DecodedToolResult:
    """Reads a tool result of any format; what is no tool result is an ``EnvelopeError``."""
    if not isinstance(result, dict) or not _is_tool_result(result):
        raise EnvelopeError("not_a_tool_result", "not a tool result")
    content = _content_of(result)

    def parse(text: str) -> Any:
        return parse_envelope_block(
            text, lenient=lenient, max_bytes=max_bytes, accept_version=accept_version
        )["payload"]

    blocks = _read_blocks(_envelope_texts(content), parse, result.get("isError") is not False)
    found = _contract_readings(result, content, max_bytes)
    if len(blocks.readings) == 1:
        found = {"tool-envelope": blocks.readings[0], **found}
    name, candidates = _decide(result, found, blocks)
    chosen = found.get(name) or _plain_reading(result, content)
    is_failure = name == "tool-envelope" and chosen.is_error
    has_data = name != "ambiguous" and not is_failure
    return DecodedToolResult(
        format=name,
        data=chosen.data if has_data else None,
        obtained=chosen.obtained,
        is_error=_is_error(result, name, chosen),
        fallback_reason=blocks.reason,
        candidates=candidates,
        text=_text_of_result(result, content, name, chosen, max_bytes),
        error=chosen.data if is_failure else None,
    )


def _is_error(result: Dict[str, Any], name: str, chosen: _Reading) -> bool:
    # What is neither a boolean nor null was meant to say something, and is read as an error.
    if result.get("isError") is not None and result.get("isError") is not False:
        return True
    # Left out, the flag of a status envelope follows its status; said, it counts.
    if name == "status-envelope" and isinstance(result.get("isError"), bool):
        return False
    return name != "ambiguous" and chosen.is_error


def _text_of_result(
    result: Dict[str, Any], content: List[Any], name: str, chosen: _Reading, max_bytes: int
) -> str:
    if not _carries(result):
        meta = result["meta"]
        return _text_for_people(meta["content"] if meta["source"] == "mcp" else [], 0)
    is_contract = name != "ambiguous" and chosen.obtained == "contract-json"
    structured = result.get("structuredContent")
    if is_contract or (name == "tiered-envelope" and _holds_json(content, structured, max_bytes)):
        return _text_for_people(content, 1)
    return _text_for_people(content, 0)


def _holds_json(content: List[Any], value: Any, max_bytes: int) -> bool:
    """Whether the first block is the JSON of a value, however it is spaced."""
    text = _text_of(content[0]) if content else None
    if text is None or not text.startswith("{") or utf16_length(text) > max_bytes:
        return False
    try:
        return json_equal(read_json(text), value)
    except EnvelopeError:
        return False


def _is_tool_result(result: Dict[str, Any]) -> bool:
    return _carries(result) or is_response_envelope(result)


def _carries(result: Dict[str, Any]) -> bool:
    return isinstance(result.get("content"), list) or "structuredContent" in result


def _content_of(result: Dict[str, Any]) -> List[Any]:
    content = result.get("content")
    return content if isinstance(content, list) else []


def _text_of(block: Any) -> Optional[str]:
    if not isinstance(block, dict) or block.get("type") != "text":
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def _envelope_texts(content: List[Any]) -> List[str]:
    """The distinct envelope blocks in order; the first block is for people and never one."""
    texts = (_text_of(block) for block in content[1:])
    return list(dict.fromkeys(text for text in texts if text is not None and PREFIX.match(text)))


def _text_for_people(content: List[Any], start: int) -> str:
    texts = []
    for index in range(start, len(content)):
        text = _text_of(content[index])
        if text is not None and (index == 0 or PREFIX.match(text) is None):
            texts.append(text)
    return "\n\n".join(texts)


def _read_blocks(texts: List[str], parse: Callable[[str], Any], may_fail: bool) -> _Blocks:
    """Reads every distinct block; with ``may_fail`` an error payload makes the result an error."""
    readings: List[_Reading] = []
    reason: Optional[str] = None
    for text in texts:
        # Two that can be read are enough to know that neither can be believed.
        if len(readings) == 2:
            break
        try:
            payload = parse(text)
        except EnvelopeError as error:
            reason = reason or error.code
            continue
        readings.append(_Reading(payload, "envelope-block", may_fail and is_error_payload(payload)))
    return _Blocks(readings, len(texts) > 1 and len(readings) > 0, reason)


def _contract_readings(result: Dict[str, Any], content: List[Any], max_bytes: int) -> Dict[str, _Reading]:
    value, obtained = _contract_value(result, content, max_bytes)
    return {
        name: _Reading(value["data"], obtained, _says_error(name, value))
        for name, fits in _CONTRACTS
        if fits(value) and (obtained != "return-value" or name == "response-envelope")
    }


def _contract_value(result: Dict[str, Any], content: List[Any], max_bytes: int) -> Tuple[Any, str]:
    if "structuredContent" in result:
        return result["structuredContent"], "structured-content"
    if not isinstance(result.get("content"), list):
        return result, "return-value"
    text = _text_of(content[0]) if content else None
    if text is None or not text.startswith("{") or utf16_length(text) > max_bytes:
        return None, "contract-json"
    try:
        return read_json(text), "contract-json"
    except EnvelopeError:
        return None, "contract-json"


def _says_error(name: str, value: Dict[str, Any]) -> bool:
    if name == "tiered-envelope":
        return value["error"] is not None
    if name == "status-envelope":
        return value["meta"]["status"] == "error"
    return name == "response-envelope" and value["meta"].get("isError") is True


def _plain_reading(result: Dict[str, Any], content: List[Any]) -> _Reading:
    if "structuredContent" in result:
        return _Reading(result["structuredContent"], "structured-content", False)
    return _Reading(content, "content", False)


def _decide(result: Dict[str, Any], found: Dict[str, _Reading], blocks: _Blocks) -> Tuple[str, Tuple[str, ...]]:
    hint = _hinted_format(result)
    # A claim does not settle which of two blocks is right, nor whether a block or the structured content is.
    contested = blocks.conflict or "structuredContent" in result
    if hint == "mcp" or (hint in found and not (hint == "tool-envelope" and contested)):
        return str(hint), ()
    if len(blocks.readings) > 1:
        return "ambiguous", ("tool-envelope", *found)
    if len(found) > 1:
        return "ambiguous", tuple(found)
    envelope = found.get("tool-envelope")
    if envelope is not None and (blocks.conflict or _contradicts(result, envelope)):
        return "ambiguous", ("tool-envelope", "mcp")
    return next(iter(found), "mcp"), ()


def _contradicts(result: Dict[str, Any], envelope: _Reading) -> bool:
    return "structuredContent" in result and not json_equal(result["structuredContent"], envelope.data)


def _hinted_format(result: Dict[str, Any]) -> Optional[str]:
    # A response envelope by itself can be nothing else.
    value: Any = result if _carries(result) else None
    for key in ("_meta", _RESULT_KEY, "residual", "format"):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value if isinstance(value, str) else None
