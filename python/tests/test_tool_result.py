"""What the vectors cannot say about reading tool results."""

import json
import math
import unittest
from typing import Any, List

from waybill_formats import EnvelopeError, decode_tool_result, encode_envelope_block

BLOCK = encode_envelope_block({"a": 1}, "t", "x")


def text(value: str) -> Any:
    """Makes a text block."""
    return {"type": "text", "text": value}


class DecodeToolResult(unittest.TestCase):
    def test_te_6_the_text_for_people_is_there_whatever_the_block_is(self) -> None:
        for block in (BLOCK, "__ENVELOPE_V1__:!", "__ENVELOPE_V9__:"):
            self.assertEqual(decode_tool_result({"content": [text("## Done"), text(block)]}).text, "## Done")
        image = {"type": "image", "data": "", "mimeType": "image/png"}
        self.assertEqual(decode_tool_result({"content": [text("a"), image, text(BLOCK), text("b")]}).text, "a\n\nb")
        self.assertEqual(decode_tool_result({"content": [image, text(BLOCK)]}).text, "")
        self.assertEqual(decode_tool_result({"content": [text(BLOCK)]}).text, BLOCK)
        status = text('{"data":1,"meta":{"status":"ok","summary":"s"}}')
        self.assertEqual(decode_tool_result({"content": [status, text("b")]}).text, "b")

    def test_te_9_an_ambiguous_result_has_no_data(self) -> None:
        decoded = decode_tool_result({"content": [text("x"), text(BLOCK)], "structuredContent": 7})
        self.assertEqual((decoded.format, decoded.data), ("ambiguous", None))
        self.assertEqual(decoded.candidates, ("tool-envelope", "mcp"))

    def test_te_9_values_only_python_can_hold_do_not_break_it(self) -> None:
        odd: List[Any] = [math.nan, 10**400, {1: 2}, (1, 2), b"x", object(), {1, 2}]
        for value in odd:
            content = [text("x"), text(BLOCK), value, {"type": value, "text": value}]
            meta = {"source": "http", "statusCode": value, "headers": {}, "contentType": ""}
            decoded = decode_tool_result({"content": content, "structuredContent": {"data": value, "meta": meta}})
            self.assertEqual(decoded.format, "ambiguous")
            with self.assertRaises(EnvelopeError):
                decode_tool_result(value)

    def test_te_9_a_value_nested_any_depth_is_compared_without_recursion(self) -> None:
        deep: Any = 0
        for _ in range(100_000):
            deep = [deep]
        decoded = decode_tool_result({"content": [text("x"), text(BLOCK)], "structuredContent": deep})
        self.assertEqual(decoded.format, "ambiguous")

    def test_te_9_a_block_beyond_max_bytes_is_not_read_where_a_tiered_envelope_stands_beside_it(self) -> None:
        envelope = {
            **{"tier": "pro", "tool_version": "1.0.0", "tool_id": "t", "request_id": "r", "capabilities": ["c"]},
            **{"duration_ms": 1, "error": None, "upgrade_hints": [], "data": {"a": 1}},
        }
        written = json.dumps(envelope)
        result = {"content": [text(written), text("b")], "structuredContent": envelope}
        self.assertEqual(decode_tool_result(result, max_bytes=len(written)).text, "b")
        beyond = decode_tool_result(result, max_bytes=len(written) - 1)
        self.assertEqual((beyond.format, beyond.text), ("tiered-envelope", written + "\n\nb"))

    def test_te_9_a_number_beyond_the_doubles_is_refused(self) -> None:
        for number in ("1e999", "-1e999", "9" * 400):
            status = text('{"data":%s,"meta":{"status":"ok","summary":"s"}}' % number)
            decoded = decode_tool_result({"content": [status]})
            self.assertEqual((decoded.format, decoded.data), ("mcp", [status]))

    def test_te_9_many_blocks_take_linear_time(self) -> None:
        broken = [text(f"__ENVELOPE_V1__:{index}") for index in range(20_000)]
        decoded = decode_tool_result({"content": [text("x"), *broken]})
        self.assertEqual((decoded.format, decoded.fallback_reason), ("mcp", "bad_base64"))
