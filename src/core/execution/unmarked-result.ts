import { RESPONSE_SOURCES } from "../envelope/response-meta.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";

type Shape = Readonly<Record<string, unknown>>;

/** What data may be taken for by its looks alone, and what its author should do. */
const LOOKS = {
  envelope: {
    what: "a response envelope that was copied, or made by another copy of the package, so that it is none here",
    fix: "return withData(envelope, data) to change the data of an envelope, or the envelope itself, and where the package is installed twice run the copy that the handler imports",
  },
  failed: {
    what: "a tool result with isError: true",
    fix: "return toolError(), or give the operation returns: createResultReader() of waybill/formats",
  },
  published: {
    what: "a published envelope",
    fix: "return what composeToolPayload(), toToolResult() or tieredEnvelope() gives, uncopied, or give the operation returns: createResultReader() of waybill/formats",
  },
} as const;

/**
 * Warns, once for each operation, of data that looks like a result. It is data all the same: a shape can be forged, and trust follows
 * who made a value.
 */
export function warnOfLooks(entry: OperationEntry, value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (!("content" in value || "meta" in value || "tier" in value)) return;
  const look = lookOf(value as Shape);
  if (look === undefined) return;
  entry.warnedOfLooks = true;
  const { what, fix } = LOOKS[look];
  const message = `The handler of "${entry.id}" returned what looks like ${what}. It is treated as data; ${fix}.`;
  entry.settings.warn({ type: "result-unmarked", message, operationId: entry.id });
}

function lookOf(value: Shape): keyof typeof LOOKS | undefined {
  try {
    const { content, meta } = value;
    if (Array.isArray(content)) return lookOfResult(value, content);
    if (typeof meta === "object" && meta !== null && "data" in value) return lookOfPair(meta as Shape);
    return isTiered(value) ? "published" : undefined;
  } catch {
    // A getter that throws is no reason to fail a call.
    return undefined;
  }
}

function lookOfResult(value: Shape, content: readonly unknown[]): keyof typeof LOOKS | undefined {
  if (value["isError"] === true) return "failed";
  const { structuredContent } = value;
  if (isObject(structuredContent) && isPublished(structuredContent)) return "published";
  const { text } = isObject(content[1]) ? content[1] : {};
  return typeof text === "string" && /^__ENVELOPE_V\d+__:/.test(text) ? "published" : undefined;
}

function isPublished(value: Shape): boolean {
  const { meta } = value;
  return isTiered(value) || (isObject(meta) && "data" in value && lookOfPair(meta) === "published");
}

function lookOfPair(meta: Shape): "envelope" | "published" | undefined {
  const { source, status, summary } = meta;
  if (RESPONSE_SOURCES.some((known) => known === source)) return "envelope";
  const isStatus = ["ok", "error", "info", "warn"].some((known) => known === status);
  return isStatus && typeof summary === "string" ? "published" : undefined;
}

function isTiered(value: Shape): boolean {
  return typeof value["tier"] === "string" && "tool_id" in value && "request_id" in value && "error" in value;
}

function isObject(value: unknown): value is Shape {
  return typeof value === "object" && value !== null;
}
