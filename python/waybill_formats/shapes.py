"""The shapes of the envelopes a tool result can hold; every check takes any value."""

import math
from typing import Any, Callable, Dict, Mapping, Optional

Check = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """True for numbers, of which a boolean is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def to_double(value: Any) -> float:
    """Gives the double a number is in every other reader of JSON."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(to_double(value))


def _is_integer(value: Any) -> bool:
    return _is_finite(value) and to_double(value).is_integer()


def _is_anything(_value: Any) -> bool:
    return True


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_true(value: Any) -> bool:
    return value is True


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _one_of(*names: str) -> Check:
    return lambda value: isinstance(value, str) and value in names


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def _record_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(check(value[key]) for key in value)


def _shape(required: Mapping[str, Check], optional: Optional[Mapping[str, Check]] = None) -> Check:
    """Unknown fields are tolerated; an optional one that is there must fit."""
    may = optional or {}

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if not all(key in value and fits(value[key]) for key, fits in required.items()):
            return False
        return all(key not in value or fits(value[key]) for key, fits in may.items())

    return check


def _variants(discriminant: str, shapes: Mapping[str, Check]) -> Check:
    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        name = value.get(discriminant)
        return isinstance(name, str) and name in shapes and shapes[name](value)

    return check


is_error_payload = _shape(
    {"category": _is_string, "code": _is_string, "message": _is_string, "recoverable": _is_boolean}
)
"""Tells whether the payload of an envelope block reports an error."""

_is_tiered_error = _shape(
    {"error": _is_string, "error_code": _is_string},
    {"error_details": lambda value: value is None or isinstance(value, dict)},
)

_has_tiered_fields = _shape(
    {
        "tier": _one_of("community", "pro", "enterprise"),
        "tool_version": _is_string,
        "tool_id": _is_string,
        "request_id": _is_string,
        "capabilities": _list_of(_is_string),
        "error": lambda value: value is None or _is_tiered_error(value),
        "upgrade_hints": _list_of(_shape({"feature": _is_string, "tier": _is_string, "reason": _is_string})),
        "data": _is_anything,
    },
    {"duration_ms": lambda value: _is_finite(value) and value >= 0},
)


def is_tiered_envelope(value: Any) -> bool:
    """Recognises a tiered envelope; only the community tier may leave its duration out."""
    return _has_tiered_fields(value) and ("duration_ms" in value or value["tier"] == "community")


is_status_envelope = _shape(
    {
        "data": _is_anything,
        "meta": _shape(
            {"status": _one_of("ok", "error", "info", "warn"), "summary": _is_string},
            {
                "details": _list_of(_is_string),
                "nextSteps": _list_of(_is_string),
                "truncated": _is_boolean,
                "tokenUsage": _shape({}, {"inline": is_number, "total": is_number}),
                "rateLimit": _shape({}, {"remaining": is_number, "resetSeconds": is_number}),
            },
        ),
    }
)
"""Recognises a status envelope."""

_EXTRAS: Dict[str, Check] = {
    "annotations": _shape(
        {},
        {
            "audience": _list_of(_one_of("user", "assistant")),
            "priority": _is_finite,
            "lastModified": _is_string,
        },
    ),
    "_meta": _is_object,
}
_is_media = _shape({"data": _is_string, "mimeType": _is_string}, _EXTRAS)
_is_content_block = _variants(
    "type",
    {
        "text": _shape({"text": _is_string}, _EXTRAS),
        "image": _is_media,
        "audio": _is_media,
        "resource": _shape(
            {
                "resource": _shape(
                    {"uri": _is_string},
                    {"mimeType": _is_string, "text": _is_string, "blob": _is_string, "_meta": _is_object},
                )
            },
            _EXTRAS,
        ),
        "resource_link": _shape(
            {"uri": _is_string, "name": _is_string},
            {
                **_EXTRAS,
                "title": _is_string,
                "description": _is_string,
                "mimeType": _is_string,
                "size": _is_finite,
            },
        ),
    },
)

_is_facts = _shape(
    {},
    {
        "durationMs": _is_finite,
        "attempts": _is_finite,
        "obtained": _one_of(
            "structured-content",
            "envelope-block",
            "contract-json",
            "text-json",
            "content",
            "body",
            "members",
            "return-value",
        ),
        "normalization": _shape(
            {key: _list_of(_is_string) for key in ("stripped", "defaulted", "converted")},
            {"omitted": _is_finite},
        ),
        "violations": _list_of(_shape({"pointer": _is_string, "expected": _is_string, "found": _is_string})),
        "sequence": _is_finite,
        "cursor": _is_string,
        "event": _is_string,
        "page": _shape({}, {"next": _is_string, "input": _is_anything}),
        "code": _is_string,
        "message": _is_string,
    },
)

_is_response_meta = _variants(
    "source",
    {
        "local": _shape(
            {"operationId": _is_string, "timestamp": _is_finite}, {"isError": _is_true, "waybill": _is_facts}
        ),
        "http": _shape(
            {"statusCode": _is_integer, "headers": _record_of(_is_string), "contentType": _is_string},
            {"setCookie": _list_of(_is_string), "isError": _is_true, "waybill": _is_facts},
        ),
        "mcp": _shape(
            {"isError": _is_boolean, "content": _list_of(_is_content_block)},
            {"_meta": _is_object, "waybill": _is_facts},
        ),
    },
)

is_response_envelope = _shape({"data": _is_anything, "meta": _is_response_meta})
"""Recognises a response envelope, with the fields its source requires."""
