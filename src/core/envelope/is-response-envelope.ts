import { isPlainObject } from "../json/json-value.ts";
import type { MCPContentBlock } from "./content-block.ts";
import type { ResponseEnvelope, ResultFacts, SaidFacts } from "./response-meta.ts";

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, Check>>;

const isAnything: Check = () => true;
const isString: Check = (value) => typeof value === "string";
const isNumber: Check = Number.isFinite;
const isInteger: Check = Number.isInteger;
const isBoolean: Check = (value) => typeof value === "boolean";
const isTrue: Check = (value) => value === true;

const oneOf = (...values: readonly string[]): Check => {
  const known = new Set<unknown>(values);
  return (value) => known.has(value);
};

/** By index, not with `every`, which a hostile array can bring along. */
const listOf =
  (isItem: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return false;
    for (let i = 0; i < value.length; i++) if (!isItem(value[i])) return false;
    return true;
  };

const recordOf =
  (isMember: Check): Check =>
  (value) => {
    if (!isPlainObject(value)) return false;
    for (const key of Object.keys(value)) if (!isMember(value[key])) return false;
    return true;
  };

/** Own properties only; an optional one may be undefined; unknown ones are tolerated. */
const shape = (required: Fields, optional: Fields = {}): Check => {
  const must = Object.entries(required);
  const may = Object.entries(optional);
  return (value) => {
    if (!isPlainObject(value)) return false;
    for (const [key, check] of must) if (!Object.hasOwn(value, key) || !check(value[key])) return false;
    for (const [key, check] of may) {
      if (!Object.hasOwn(value, key)) continue;
      const member = value[key];
      if (member !== undefined && !check(member)) return false;
    }
    return true;
  };
};

/** One shape per value of a discriminant. */
const variants = (discriminant: string, shapes: Fields): Check => {
  const byName = new Map<unknown, Check>(Object.entries(shapes));
  return (value) => {
    if (!isPlainObject(value) || !Object.hasOwn(value, discriminant)) return false;
    return byName.get(value[discriminant])?.(value) === true;
  };
};

const isRecord = recordOf(isAnything);

const isAnnotations = shape(
  {},
  { audience: listOf(oneOf("user", "assistant")), priority: isNumber, lastModified: isString },
);

const extras = { annotations: isAnnotations, _meta: isRecord };
const isMedia = shape({ data: isString, mimeType: isString }, extras);

const isKnownBlock = variants("type", {
  text: shape({ text: isString }, extras),
  image: isMedia,
  audio: isMedia,
  resource: shape(
    {
      resource: shape(
        { uri: isString },
        { mimeType: isString, text: isString, blob: isString, _meta: isRecord },
      ),
    },
    extras,
  ),
  resource_link: shape(
    { uri: isString, name: isString },
    { ...extras, title: isString, description: isString, mimeType: isString, size: isNumber },
  ),
});

const isTexts = listOf(isString);

const isSaid = shape(
  {},
  {
    status: oneOf("ok", "error", "info", "warn"),
    summary: isString,
    details: isTexts,
    nextSteps: isTexts,
    content: listOf(isKnownBlock),
    truncated: isBoolean,
    tokenUsage: shape({}, { inline: isNumber, total: isNumber }),
    rateLimit: shape({}, { remaining: isNumber, resetSeconds: isNumber }),
    capabilities: isTexts,
    upgradeHints: listOf(shape({ feature: isString, tier: isString, reason: isString })),
    category: isString,
    recoverable: isBoolean,
    suggestedAction: isString,
    nextTool: isString,
    errorExtra: isRecord,
    _meta: isRecord,
    extra: recordOf(isRecord),
  },
);

const isFacts = shape(
  {},
  {
    durationMs: isNumber,
    attempts: isNumber,
    obtained: oneOf(
      "structured-content",
      "envelope-block",
      "contract-json",
      "text-json",
      "content",
      "body",
      "members",
      "return-value",
    ),
    normalization: shape(
      { stripped: isTexts, defaulted: isTexts, converted: isTexts },
      { omitted: isNumber },
    ),
    violations: listOf(shape({ pointer: isString, expected: isString, found: isString })),
    sequence: isNumber,
    cursor: isString,
    event: isString,
    page: shape({}, { next: isString, input: isAnything }),
    unknown: isRecord,
    code: isString,
    message: isString,
    said: isSaid,
    masked: isTexts,
  },
);

const isMeta = variants("source", {
  local: shape({ operationId: isString, timestamp: isNumber }, { isError: isTrue, waybill: isFacts }),
  http: shape(
    { statusCode: isInteger, headers: recordOf(isString), contentType: isString },
    { setCookie: listOf(isString), isError: isTrue, waybill: isFacts },
  ),
  mcp: shape({ isError: isBoolean, content: listOf(isKnownBlock) }, { _meta: isRecord, waybill: isFacts }),
});

const isEnvelope = shape({ data: isAnything, meta: isMeta });

/** Tells whether a value is a content block of one of the kinds MCP defines; never throws. */
export function isContentBlock(value: unknown): value is MCPContentBlock {
  return passes(isKnownBlock, value);
}

/** Tells whether a value has the shape of the facts about a result; never throws. */
export function isResultFacts(value: unknown): value is ResultFacts {
  return passes(isFacts, value);
}

/** Tells whether a value has the shape of what an operation says about its result; never throws. */
export function isSaidFacts(value: unknown): value is SaidFacts {
  return passes(isSaid, value);
}

/** Tells whether a value has the shape of an envelope, with the fields its source requires; never throws. */
export function isResponseEnvelope(value: unknown): value is ResponseEnvelope {
  return passes(isEnvelope, value);
}

function passes(check: Check, value: unknown): boolean {
  try {
    return check(value);
  } catch {
    return false;
  }
}
