"""Reads and writes tool envelopes, and tells which format a tool result is in."""

from .envelope_block import Envelope, parse_envelope_block
from .envelope_writing import encode_envelope_block, to_tool_result
from .errors import EnvelopeError
from .tool_result import DecodedToolResult, decode_tool_result

__all__ = [
    "DecodedToolResult",
    "Envelope",
    "EnvelopeError",
    "decode_tool_result",
    "encode_envelope_block",
    "parse_envelope_block",
    "to_tool_result",
]
