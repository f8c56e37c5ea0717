"""What the vectors cannot say about reading a block."""

import pickle
import sys
import unittest
from typing import List

from waybill_formats import EnvelopeError, encode_envelope_block, parse_envelope_block

BLOCK = encode_envelope_block({"a": 1}, "t", "x")


class ParseEnvelopeBlock(unittest.TestCase):
    def test_te_9_text_without_the_prefix_is_a_value_error_with_the_message_of_the_specification(self) -> None:
        with self.assertRaises(ValueError) as caught:
            parse_envelope_block("x")
        self.assertEqual(str(caught.exception), "not an envelope block")

    def test_te_9_an_envelope_is_used_like_a_dict(self) -> None:
        envelope = parse_envelope_block(BLOCK)
        self.assertEqual(envelope["payload"], {"a": 1})
        self.assertEqual(envelope["meta"]["tool"], "t")
        self.assertEqual(envelope, {"payload": {"a": 1}, "meta": {"tool": "t", "ts": "x", "version": 1}})
        self.assertEqual((envelope.payload, envelope.meta["ts"]), ({"a": 1}, "x"))
        self.assertEqual((envelope.extra, envelope.tolerated), ({}, []))

    def test_te_9_anything_that_is_no_text_is_no_envelope(self) -> None:
        for value in (None, 1, b"__ENVELOPE_V1__:", [BLOCK], {}):
            with self.subTest(repr(value)), self.assertRaises(EnvelopeError) as caught:
                parse_envelope_block(value)  # type: ignore[arg-type]
            self.assertEqual(caught.exception.code, "not_an_envelope")

    def test_te_4_the_policy_is_asked_with_the_number_of_the_prefix(self) -> None:
        asked: List[int] = []

        def accept(version: int) -> bool:
            asked.append(version)
            return False

        with self.assertRaises(EnvelopeError) as caught:
            parse_envelope_block("__ENVELOPE_V12__:", accept_version=accept)
        self.assertEqual((caught.exception.code, asked), ("unsupported_version", [12]))

    def test_te_9_an_error_survives_pickling(self) -> None:
        error = pickle.loads(pickle.dumps(EnvelopeError("bad_json", "not JSON")))
        self.assertEqual((error.code, str(error)), ("bad_json", "not JSON"))

    def test_te_9_a_caller_with_little_stack_left_gets_an_envelope_error(self) -> None:
        deep = encode_envelope_block(_nested(511), "t", "x")
        self.assertEqual(_depth_of(parse_envelope_block(deep)["payload"]), 511)
        outcomes = {_from_below(levels, deep) for levels in range(0, sys.getrecursionlimit() - 250, 50)}
        self.assertLessEqual(outcomes, {"read", "bad_json"})
        self.assertIn("bad_json", outcomes)

    def test_te_9_long_hostile_text_takes_linear_time(self) -> None:
        for text in ("=" * 10**6, "A" * 10**6 + "!", " " * 10**6, "A=" * 10**6):
            for lenient in (False, True):
                with self.assertRaises(EnvelopeError):
                    parse_envelope_block("__ENVELOPE_V1__:" + text, lenient=lenient)


def _nested(levels: int) -> List[object]:
    value: List[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def _depth_of(value: object) -> int:
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    return depth


def _from_below(levels: int, text: str) -> str:
    if levels:
        return _from_below(levels - 1, text)
    try:
        parse_envelope_block(text)
    except EnvelopeError as error:
        return error.code
    return "read"
