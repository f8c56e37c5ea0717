"""Base64 by RFC 4648, strictly or with a list of what was put up with."""

import base64
import re
from typing import List, Tuple

from .errors import EnvelopeError

_STRICT = re.compile(r"[A-Za-z0-9+/]*={0,2}\Z")
_WHITESPACE = re.compile(r"[ \t\n\r]+")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def utf16_length(text: str) -> int:
    """Counts UTF-16 code units, which is how the other readers of the format count."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def decoded_size(text: str) -> int:
    """Tells how many bytes the text would decode to, from its length and padding alone."""
    padding = 2 if text.endswith("==") else 1 if text.endswith("=") else 0
    return utf16_length(text) * 3 // 4 - padding


def decode_base64(text: str, lenient: bool, tolerated: List[str]) -> bytes:
    """Decodes the text; what only lenient reading puts up with is added to ``tolerated``."""
    body, padding = _split(_plain_letters(text, tolerated) if lenient else text)
    missing = -len(body) % 4
    if missing == 3:
        raise _bad("its length is impossible")
    if lenient and padding == 0 and missing:
        tolerated.append("missing_padding")
    elif padding != missing:
        raise _bad("its padding is wrong")
    if missing and _ALPHABET.index(body[-1]) & ((1 << (2 * missing)) - 1):
        if not lenient:
            raise _bad("bits behind its last byte are set")
        tolerated.append("stray_bits")
    return base64.b64decode(body + "=" * missing)


def _plain_letters(text: str, tolerated: List[str]) -> str:
    letters = _WHITESPACE.sub("", text)
    if len(letters) != len(text):
        tolerated.append("whitespace")
    if "-" in letters or "_" in letters:
        tolerated.append("url_alphabet")
        letters = letters.replace("-", "+").replace("_", "/")
    return letters


def _split(letters: str) -> Tuple[str, int]:
    if _STRICT.match(letters) is None:
        raise _bad("it holds a character that does not belong there")
    body = letters.rstrip("=")
    return body, len(letters) - len(body)


def _bad(why: str) -> EnvelopeError:
    return EnvelopeError("bad_base64", f"the envelope is not base64: {why}")
