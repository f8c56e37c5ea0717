import type { MCPResponseMeta, ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import type { CallError } from "../../core/errors/errors.ts";
import { asJson } from "../../core/json/as-json.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { type CallToolResult, type ContentBlock, textBlock } from "../../core/result/call-tool-result.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { foreignMeta } from "./describe-tool.ts";

/**
 * MCP's own results: data as structured content and as text. What an imported tool answered goes on as it came. Errors are text
 * for people; their structure rides in `_meta`, because clients of the first SDK throw away an error result whose structured
 * content misses the output schema.
 */
export const plainFormat: ResultFormat = Object.freeze({
  name: "plain",

  write({ outcome, operation }: EndedCall): CallToolResult {
    if ("error" in outcome) return toErrorText(outcome.error);
    const { envelope } = outcome;
    if (envelope.meta.source === "mcp") return passOn(envelope.data, envelope.meta, operation);
    return envelope.meta.isError === true ? toToolErrorText(envelope) : toDataResult(envelope.data);
  },

  outputSchema({ outputSchema }: AnyOperation) {
    if (outputSchema === undefined) return undefined;
    const { json, meaningful } = toOperationSchema(outputSchema, "output");
    return meaningful ? json : undefined;
  },
});

/** Writes a failed call for people: what went wrong, then where. */
export function toErrorText(error: CallError): CallToolResult {
  return { content: [textBlock(sayWhy(error.toJSON()))], isError: true };
}

function toDataResult(data: unknown): CallToolResult {
  if (data === undefined) return { content: [] };
  const structured = asJson(data);
  return withStructured({ content: [textBlock(toText(structured))] }, structured);
}

/** The types of the SDK know objects alone; the protocol takes any JSON value since 2026-07-28. */
function withStructured(result: CallToolResult, structured: unknown): CallToolResult {
  result.structuredContent = structured as Record<string, unknown>;
  return result;
}

function toText(data: unknown): string {
  return typeof data === "string" ? data : JSON.stringify(data);
}

function toToolErrorText({ data, meta }: ResponseEnvelope): CallToolResult {
  const { code, message, details } = meta.waybill ?? {};
  const content: ContentBlock[] = [];
  if (message !== undefined || code !== undefined) {
    content.push(textBlock(sayWhy({ code, message: message ?? "The operation said no.", details })));
  }
  if (data !== undefined) content.push(textBlock(toText(asJson(data))));
  if (content.length === 0) content.push(textBlock("The operation said no."));
  return { content, isError: true };
}

function passOn(data: unknown, meta: MCPResponseMeta, operation: AnyOperation | undefined): CallToolResult {
  const _meta = foreignMeta(meta._meta);
  const result: CallToolResult = { content: [...meta.content] as ContentBlock[] };
  if (Object.keys(_meta).length > 0) result._meta = _meta;
  if (meta.isError) result.isError = true;
  if (!isStructured(data, meta) || (meta.isError && !isWelcome(data, operation))) return result;
  const structured = asJson(data);
  if (result.content.length === 0) result.content.push(textBlock(toText(structured)));
  return withStructured(result, structured);
}

/** Data that is only the content again is no structured content. */
function isStructured(data: unknown, meta: MCPResponseMeta): boolean {
  if (Object.hasOwn(meta, "structuredContent")) return data !== undefined;
  if (data === undefined || data === meta.content || meta.waybill?.obtained === "content") return false;
  return !isEqual(data, meta.content);
}

/** The data of an error is kept where no client can take offence at it. */
function isWelcome(data: unknown, operation: AnyOperation | undefined): boolean {
  const schema = operation?.outputSchema;
  return schema === undefined || toOperationSchema(schema, "output").check(asJson(data));
}

interface Reason {
  readonly code?: string | undefined;
  readonly message: string;
  readonly details?: unknown;
}

function sayWhy({ code, message, details }: Reason): string {
  const first = code === undefined ? message : `${message} [${code}]`;
  const written = details === undefined ? undefined : (issueLines(details) ?? toJsonTextOrNone(details));
  return written === undefined ? first : `${first}\n${written}`;
}

/** Says the issues of a schema one by one, each with its pointer. */
function issueLines(details: unknown): string | undefined {
  if (!isPlainObject(details) || !Array.isArray(details["issues"])) return undefined;
  const lines = details["issues"].map((issue: unknown) => {
    const { pointer, expected, found } = isPlainObject(issue) ? issue : {};
    if (typeof pointer !== "string") return undefined;
    return `- ${pointer === "" ? "the input itself" : pointer}: expected ${String(expected)}, found ${String(found)}`;
  });
  return lines.length > 0 && lines.every((line) => line !== undefined) ? lines.join("\n") : undefined;
}
