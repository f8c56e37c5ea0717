import { ResponseMetaSchema } from "../../../core/envelope/envelope-schemas.ts";
import { ERROR_CODES } from "../../../core/errors/error-codes.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { ENVELOPE_TYPE, formatType } from "../accept.ts";
import { PROBLEM_TYPE } from "../problem-answer.ts";
import type { DocumentObject } from "./openapi-document.ts";

const TEXT: JsonSchema = { type: "string" };

/** Refers to something that operations share. */
export function sharedRef(
  kind: "schemas" | "headers" | "responses" | "parameters",
  name: string,
): DocumentObject {
  return { $ref: `#/components/${kind}/${name}` };
}

/** RFC 9457, with the members that errors and refusals of operations have here. */
const PROBLEM: JsonSchema = {
  type: "object",
  description: "An RFC 9457 problem.",
  properties: {
    type: { type: "string", format: "uri-reference" },
    title: TEXT,
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: TEXT,
    instance: { type: "string", format: "uri-reference", description: "This one occurrence." },
    code: { type: "string", description: "Tells failures apart, within one status too." },
    retryable: { type: "boolean", description: "The same input may work later." },
    correctable: { type: "boolean", description: "The caller can fix the input." },
    details: { description: "What else is known; for invalid input the list `issues`." },
    waybill: {
      type: "object",
      properties: { outcome: { enum: ["call-error", "tool-error"] } },
      required: ["outcome"],
    },
  },
  required: ["type", "title", "status"],
};

/** Schemas that operations share. */
export function sharedSchemas(): Readonly<Record<string, JsonSchema>> {
  return { EnvelopeMeta: compileSchema(ResponseMetaSchema).json, Problem: PROBLEM };
}

/** Headers that operations share. */
export const SHARED_HEADERS: DocumentObject = {
  ETag: header("Names this very answer; send it as `if-none-match`."),
  Facts: header("What is known about the result besides its data, as compact JSON."),
  Link: header('Where the next page is: `<…>; rel="next"`.'),
  RequestId: header("The id of this request, that of the caller where it sent one."),
  RetryAfter: header("Seconds to wait before trying again."),
  Traceparent: header("The W3C trace context."),
  WwwAuthenticate: header("How to authenticate."),
};

function header(description: string): DocumentObject {
  return { description, schema: TEXT };
}

/** Parameters that operations share. */
export const SHARED_PARAMETERS: DocumentObject = {
  IdempotencyKey: {
    name: "idempotency-key",
    in: "header",
    description: "A repeated request with the same key gets the first one's answer, and nothing runs twice.",
    schema: TEXT,
  },
};

const REQUEST_ID = { "x-request-id": sharedRef("headers", "RequestId") };
const RETRY_AFTER = { "retry-after": sharedRef("headers", "RetryAfter") };

/** What a result format writes: a tool result, its structured content described where that is known. */
export function toolResultSchema(structuredContent?: JsonSchemaObject): JsonSchemaObject {
  return {
    type: "object",
    properties: {
      content: { type: "array", items: { type: "object" } },
      ...(structuredContent !== undefined && { structuredContent }),
      isError: { type: "boolean" },
    },
    required: ["content"],
  };
}

/** Answers of failures that operations share, with the formats they may be asked for in. */
export function sharedResponses(formats: readonly string[]): DocumentObject {
  const asked = Object.fromEntries(formats.map((name) => [formatType(name), { schema: toolResultSchema() }]));
  const envelope = { [ENVELOPE_TYPE]: { schema: envelopeSchema({}) } };
  const failure = (description: string, headers: DocumentObject = {}, more: DocumentObject = {}) => ({
    description,
    headers: { ...REQUEST_ID, ...headers },
    content: { ...problemContent(sharedRef("schemas", "Problem")), ...more, ...asked },
  });
  return {
    AccessDenied: failure(ERROR_CODES.ACCESS_DENIED.message),
    Failure: failure("The call failed.", RETRY_AFTER, envelope),
    InvalidInput: failure(ERROR_CODES.VALIDATION_ERROR.message),
    NotAuthenticated: failure(ERROR_CODES.UNAUTHENTICATED.message, {
      "www-authenticate": sharedRef("headers", "WwwAuthenticate"),
    }),
    ToolError: failure("The operation ran, and said no.", {}, envelope),
    UpgradeRequired: failure(ERROR_CODES.UPGRADE_REQUIRED.message),
  };
}

/** The whole envelope around data of a schema. */
export function envelopeSchema(data: JsonSchemaObject): JsonSchemaObject {
  return {
    type: "object",
    properties: { data, meta: sharedRef("schemas", "EnvelopeMeta") },
    required: ["meta"],
  };
}

/** The content of an answer that is a problem. */
export function problemContent(schema: JsonSchemaObject, example?: unknown): DocumentObject {
  return { [PROBLEM_TYPE]: { schema, ...(example !== undefined && { example }) } };
}
