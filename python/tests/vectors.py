"""The vectors that every reader of the formats shares."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

_FOLDER = Path(__file__).resolve().parents[2] / "test" / "vectors"

Vector = Dict[str, Any]


def read_vectors(name: str) -> Dict[str, List[Vector]]:
    """Reads one file of vectors."""
    return json.loads((_FOLDER / name).read_text(encoding="utf-8"))


def text_of(vector: Vector) -> str:
    """Gives the text of a vector, which is spelled out or described."""
    text = vector["text"]
    if isinstance(text, str):
        return text
    return text["start"] + text["repeat"] * text["times"] + text["end"]


def payload_of(vector: Vector) -> Any:
    """Gives the payload of a vector, which is a value or JSON text."""
    return json.loads(vector["payloadText"]) if "payloadText" in vector else vector["payload"]


def options_of(options: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """Turns the options of a vector into keyword arguments."""
    given: Dict[str, Any] = {}
    for key, value in (options or {}).items():
        if key == "maxBytes":
            given["max_bytes"] = value
        elif key == "acceptVersions":
            given["accept_version"] = _accepts(value)
        else:
            given[key] = value
    return given


def _accepts(versions: List[int]) -> Callable[[int], bool]:
    return lambda version: version in versions
