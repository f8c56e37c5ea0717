"""Writing blocks and results."""

import base64
import json
import math
import unittest
from typing import Any, Dict, List

from tests.vectors import read_vectors
from waybill_formats import (
    EnvelopeError,
    decode_tool_result,
    encode_envelope_block,
    parse_envelope_block,
    to_tool_result,
)

EXAMPLES = [
    vector
    for vector in read_vectors("envelope-blocks.json")["valid"]
    if "example of the specification" in vector["name"]
]


def json_of(block: str) -> str:
    """Gives the JSON text inside a block."""
    return base64.b64decode(block.partition(":")[2]).decode("utf-8")


def payload_text(payload: Any) -> str:
    """Gives the JSON text of the payload alone."""
    text = json_of(encode_envelope_block(payload, "t", "x"))
    return text[len('{"payload":') : -len(',"meta":{"tool":"t","ts":"x","version":1}}')]


class EncodeEnvelopeBlock(unittest.TestCase):
    def refusal(self, payload: Any, **options: Any) -> str:
        with self.assertRaises(EnvelopeError) as caught:
            encode_envelope_block(payload, "t", "x", **options)
        return caught.exception.code

    def test_te_2_the_examples_of_the_specification_come_out_byte_for_byte(self) -> None:
        self.assertEqual(len(EXAMPLES), 2)
        for vector in EXAMPLES:
            meta = vector["meta"]
            self.assertEqual(encode_envelope_block(vector["payload"], meta["tool"], meta["ts"]), vector["text"])

    def test_te_9_numbers_are_written_as_javascript_writes_them(self) -> None:
        numbers = {
            1.0: "1", -0.0: "0", 0.1: "0.1", 1e16: "10000000000000000", 1e21: "1e+21", 1.5e21: "1.5e+21",
            123456789012345680000.0: "123456789012345680000", 1e-6: "0.000001", 1e-7: "1e-7",
            1.25e-9: "1.25e-9", 5e-324: "5e-324", 1.7976931348623157e308: "1.7976931348623157e+308",
            -2.5: "-2.5", 100.5: "100.5",
        }  # fmt: skip
        for number, written in numbers.items():
            self.assertEqual(payload_text(number), written)
        self.assertEqual(payload_text([10**20, True, False, None, -7]), "[100000000000000000000,true,false,null,-7]")

    def test_te_9_text_is_written_raw_but_for_lone_surrogates(self) -> None:
        self.assertEqual(payload_text("é😀\u2028\x7f"), '"é😀\u2028\x7f"')
        self.assertEqual(payload_text("\ud800x\uDFFF"), '"\\ud800x\\udfff"')
        self.assertEqual(payload_text("\ud83d\ude00"), '"😀"')
        self.assertEqual(payload_text('"\\/\b\f\n\r\t\0\x1f'), '"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f"')
        self.assertEqual(payload_text({"\ud800": ()}), '{"\\ud800":[]}')

    def test_te_9_what_json_cannot_hold_is_refused(self) -> None:
        circular: List[Any] = []
        circular.append(circular)
        for value in (math.nan, math.inf, -math.inf, {1: 2}, {None: 1}, {1}, b"x", 10**400, 10**5000, circular, 1j):
            with self.subTest(str(type(value))):
                self.assertEqual(self.refusal([value]), "not_json")

    def test_te_9_depth_is_bounded_where_reading_bounds_it(self) -> None:
        deepest: Any = 0
        for _ in range(511):
            deepest = [deepest]
        self.assertEqual(parse_envelope_block(encode_envelope_block(deepest, "t", "x"))["payload"], deepest)
        self.assertEqual(self.refusal([deepest]), "not_json")

    def test_te_9_size_is_bounded_in_bytes_also_where_shared_lists_unfold(self) -> None:
        size = len(json_of(encode_envelope_block("é", "t", "x")).encode("utf-8"))
        self.assertIn("__ENVELOPE_V1__:", encode_envelope_block("é", "t", "x", max_bytes=size))
        self.assertEqual(self.refusal("é", max_bytes=size - 1), "too_large")
        shared: List[Any] = []
        for _ in range(100):
            shared = [shared, shared]
        self.assertEqual(self.refusal(shared, max_bytes=10_000), "too_large")

    def test_te_5_unknown_meta_comes_behind_the_known(self) -> None:
        block = encode_envelope_block(1, "t", "x", meta={"trace": 7, "a": None})
        self.assertEqual(
            json_of(block), '{"payload":1,"meta":{"tool":"t","ts":"x","version":1,"trace":7,"a":null}}'
        )
        self.assertEqual(self.refusal(1, meta={"version": 2}), "bad_shape")

    def test_te_9_the_time_is_now_unless_given(self) -> None:
        ts = parse_envelope_block(encode_envelope_block(None, "t"))["meta"]["ts"]
        self.assertRegex(ts, r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


class ToToolResult(unittest.TestCase):
    def test_te_9_a_result_is_read_back(self) -> None:
        result = to_tool_result("## Done", {"a": [1]}, {"tool": "t", "ts": "x", "trace": 1})
        self.assertEqual([block["type"] for block in result["content"]], ["text", "text"])
        self.assertNotIn("isError", result)
        decoded = decode_tool_result(json.loads(json.dumps(result)))
        self.assertEqual((decoded.format, decoded.data, decoded.text), ("tool-envelope", {"a": [1]}, "## Done"))
        self.assertFalse(decoded.is_error)

    def test_te_9_an_error_payload_makes_an_error_result(self) -> None:
        payload: Dict[str, Any] = {"category": "later", "code": "E", "message": "m", "recoverable": False}
        result = to_tool_result("❌", payload, {"tool": "t", "ts": "x", "version": 1})
        self.assertIs(result["isError"], True)
        self.assertTrue(decode_tool_result(result).is_error)

    def test_te_9_wrong_arguments_are_refused(self) -> None:
        wrong = [("x", {"ts": "x"}), ("x", {"tool": 1}), ("x", {"tool": "t", "ts": 1}), (1, {"tool": "t"})]
        for summary, meta in wrong:
            with self.assertRaises(EnvelopeError) as caught:
                to_tool_result(summary, 1, meta)  # type: ignore[arg-type]
            self.assertEqual(caught.exception.code, "bad_shape")
        for version in (2, True, "1"):
            with self.assertRaises(EnvelopeError) as caught:
                to_tool_result("x", 1, {"tool": "t", "version": version})
            self.assertEqual(caught.exception.code, "unsupported_version")
