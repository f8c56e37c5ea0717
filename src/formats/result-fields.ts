import { isResultFacts } from "../core/envelope/envelope.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import { FORMAT_NAMES, type ResultError, type ToolResult } from "../core/result/tool-result.ts";

type Check = (value: unknown) => boolean;

const isAnything: Check = () => true;
const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const isNumber: Check = (value) => typeof value === "number" && Number.isFinite(value);
const isRecord: Check = isPlainObject;
const isTexts: Check = (value) => Array.isArray(value) && value.every(isText);
const oneOf =
  (...known: readonly unknown[]): Check =>
  (value) =>
    known.includes(value);
/** Numbers under these keys, each of which may be missing. */
const isCounts =
  (...keys: readonly string[]): Check =>
  (value) =>
    isPlainObject(value) && keys.every((key) => value[key] === undefined || typeof value[key] === "number");

const isHint: Check = (value) =>
  isPlainObject(value) && isText(value["feature"]) && isText(value["tier"]) && isText(value["reason"]);

const isHTTPFacts: Check = (value) =>
  isPlainObject(value) &&
  Number.isInteger(value["statusCode"]) &&
  isText(value["contentType"]) &&
  isPlainObject(value["headers"]) &&
  Object.values(value["headers"]).every(isText) &&
  (value["setCookie"] === undefined || isTexts(value["setCookie"]));

const ERROR_FIELDS: Readonly<Record<keyof ResultError, Check>> = {
  message: isText,
  code: isText,
  category: isText,
  details: isAnything,
  recoverable: isFlag,
  suggestedAction: isText,
  nextTool: isText,
  extra: isRecord,
};

/** What each field of the canonical result may hold, as far as anybody outside may say it. */
const FIELDS: Readonly<Record<keyof ToolResult, Check>> = {
  isError: isFlag,
  data: isAnything,
  content: Array.isArray,
  error: (value) => isPlainObject(value) && isText(value["message"]) && holds(value, ERROR_FIELDS),
  status: oneOf("ok", "error", "info", "warn"),
  summary: isText,
  details: isTexts,
  nextSteps: isTexts,
  truncated: isFlag,
  tokenUsage: isCounts("inline", "total"),
  rateLimit: isCounts("remaining", "resetSeconds"),
  tool: isText,
  toolVersion: isText,
  requestId: isText,
  timestamp: isText,
  durationMs: isNumber,
  tier: oneOf("community", "pro", "enterprise"),
  capabilities: isTexts,
  upgradeHints: (value) => Array.isArray(value) && value.every(isHint),
  http: isHTTPFacts,
  facts: isResultFacts,
  _meta: isRecord,
  extra: (value) => isPlainObject(value) && Object.values(value).every(isRecord),
};

function holds(value: Record<string, unknown>, fields: Readonly<Record<string, Check>>): boolean {
  return Object.keys(value).every((key) => Object.hasOwn(fields, key) && fields[key]?.(value[key]));
}

/** The check of a field of the canonical result; nothing for a name it does not have. */
export function isField(name: string): Check | undefined {
  return Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof ToolResult] : undefined;
}

/** The check of a field inside `error`, or of one format's part of `extra`. */
export function isNestedField(field: string, name: string): Check | undefined {
  if (field === "error")
    return Object.hasOwn(ERROR_FIELDS, name) ? ERROR_FIELDS[name as keyof ResultError] : undefined;
  return FORMAT_NAMES.some((format) => format === name) ? isRecord : undefined;
}

/** Tells whether numbers, texts and the rest of a status envelope's meta are what they should be. */
export function isStatusMeta(meta: unknown): meta is Record<string, unknown> {
  if (!isPlainObject(meta) || !isText(meta["summary"]) || !FIELDS.status(meta["status"])) return false;
  const optional = ["details", "nextSteps", "truncated", "tokenUsage", "rateLimit"] as const;
  return optional.every((key) => meta[key] === undefined || FIELDS[key](meta[key]));
}

/** Tells whether a value is a list of upgrade hints. */
export const isUpgradeHints: Check = FIELDS.upgradeHints;

/** Tells whether a value is a list of texts. */
export const isTextList: Check = isTexts;
