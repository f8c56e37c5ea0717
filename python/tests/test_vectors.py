"""Every vector, read in Python."""

import unittest
from typing import Any, Optional

from tests.vectors import Vector, options_of, payload_of, read_vectors, text_of
from waybill_formats import EnvelopeError, decode_tool_result, parse_envelope_block
from waybill_formats.json_equality import json_equal

BLOCKS = read_vectors("envelope-blocks.json")
RESULTS = read_vectors("tool-results.json")


class EnvelopeBlockVectors(unittest.TestCase):
    def assert_reads(self, vector: Vector, lenient: bool) -> None:
        envelope = parse_envelope_block(text_of(vector), lenient=lenient, **options_of(vector.get("options")))
        self.assertTrue(json_equal(envelope["payload"], payload_of(vector)), "payload")
        self.assertTrue(json_equal(envelope["meta"], vector["meta"]), "meta")
        self.assertTrue(json_equal(envelope.extra, vector.get("extra", {})), "extra")
        self.assertEqual(envelope.tolerated, vector.get("tolerated", []))

    def assert_refuses(self, vector: Vector, lenient: bool, code: str) -> None:
        with self.assertRaises(EnvelopeError) as caught:
            parse_envelope_block(text_of(vector), lenient=lenient, **options_of(vector.get("options")))
        self.assertEqual(caught.exception.code, code)

    def test_te_9_valid_blocks_are_read_strictly_and_leniently(self) -> None:
        for vector in BLOCKS["valid"]:
            for lenient in (False, True):
                with self.subTest(vector["name"], lenient=lenient):
                    self.assert_reads(vector, lenient)

    def test_te_9_tolerated_blocks_are_read_leniently_alone(self) -> None:
        for vector in BLOCKS["tolerated"]:
            with self.subTest(vector["name"]):
                self.assert_reads(vector, True)
                self.assert_refuses(vector, False, vector["strictCode"])

    def test_te_9_refused_blocks_are_refused_with_their_code(self) -> None:
        for vector in BLOCKS["refused"]:
            with self.subTest(vector["name"]):
                self.assert_refuses(vector, False, vector["code"])
                self.assert_refuses(vector, True, vector.get("lenientCode", vector["code"]))


class ToolResultVectors(unittest.TestCase):
    def test_te_9_results_are_recognised(self) -> None:
        for vector in RESULTS["results"]:
            with self.subTest(vector["name"]):
                decoded = decode_tool_result(vector["result"], **options_of(vector.get("options")))
                self.assertEqual(decoded.format, vector["format"])
                self.assertEqual(decoded.is_error, vector["isError"])
                self.assertEqual(decoded.fallback_reason, vector.get("fallbackReason"))
                self.assertEqual(list(decoded.candidates), vector.get("candidates", []))
                if "obtained" in vector:
                    self.assertEqual(decoded.obtained, vector["obtained"])
                if "data" in vector:
                    self.assertTrue(json_equal(decoded.data if decoded.error is None else decoded.error, vector["data"]), "data")

    def test_te_9_what_is_no_tool_result_is_refused(self) -> None:
        for vector in RESULTS["refused"]:
            with self.subTest(vector["name"]):
                self.assertEqual(_refusal(vector["result"]), vector["code"])


def _refusal(result: Any) -> Optional[str]:
    try:
        decode_tool_result(result)
    except EnvelopeError as error:
        return error.code
    return None
