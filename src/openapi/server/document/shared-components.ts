import { ERROR_CODES } from "../../../core/errors/error-codes.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
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
export const SHARED_SCHEMAS: Readonly<Record<string, JsonSchema>> = { Problem: PROBLEM };

/** Headers that operations share. */
export const SHARED_HEADERS: DocumentObject = {
  ETag: header("Names this very answer; send it as `if-none-match`."),
  Facts: header("What is known about the result besides its data, as compact JSON."),
  Link: header('Where the next page is: `<…>; rel="next"`.'),
  RequestId: header("The id of this request, that of the caller where it sent one."),
  RetryAfter: header("Seconds to wait before trying again."),
  Traceparent: header("The W3C trace context."),
  Violations: {
    description: "In how many places the data does not match its schema; absent where it does.",
    schema: { type: "integer", minimum: 1 },
  },
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

/** What each of the failures that operations share means. */
const FAILURES = {
  AccessDenied: `${ERROR_CODES.ACCESS_DENIED.message} Or the page or the address it comes from is not allowed.`,
  AddressTooLong: "The address is too long; call the operation by its id at `/call`.",
  Conflict:
    "The first call with this `idempotency-key` still runs or its outcome is not known, or something else is in the way.",
  Failure: "The call failed.",
  Gone: "The stream that `last-event-id` names is not known, or no longer.",
  InvalidInput: ERROR_CODES.VALIDATION_ERROR.message,
  NotAcceptable: "None of the media types in `accept` is offered.",
  NotAuthenticated: ERROR_CODES.UNAUTHENTICATED.message,
  NotFound: "The operation is not there for this caller, or what it asks for is not.",
  ServerFailure: "The operation failed, or its result is not what it declares.",
  TimedOut: ERROR_CODES.TIMEOUT.message,
  TooLarge: ERROR_CODES.TOO_LARGE.message,
  TooMany: ERROR_CODES.RESOURCE_EXHAUSTED.message,
  ToolError: "The operation ran, and said no. Or this `idempotency-key` was used for another input.",
  Unavailable: ERROR_CODES.UNAVAILABLE.message,
  UnsupportedBody: "The body is of a media type that is not taken.",
  UpgradeRequired: ERROR_CODES.UPGRADE_REQUIRED.message,
} as const;

/** The name of a failure that operations share. */
export type SharedFailure = keyof typeof FAILURES;

const FAILURE_HEADERS: Readonly<Partial<Record<SharedFailure, DocumentObject>>> = {
  Conflict: RETRY_AFTER,
  Failure: RETRY_AFTER,
  NotAuthenticated: { "www-authenticate": sharedRef("headers", "WwwAuthenticate") },
  TooMany: RETRY_AFTER,
  Unavailable: RETRY_AFTER,
};

/** Answers that operations share. */
export const SHARED_RESPONSES: DocumentObject = {
  NoData: {
    description: "There is no data.",
    headers: { ...REQUEST_ID, traceparent: sharedRef("headers", "Traceparent") },
  },
  NotModified: {
    description: "Nothing has changed since the answer named by `if-none-match`.",
    headers: REQUEST_ID,
  },
  ...Object.fromEntries(
    Object.entries(FAILURES).map(([name, description]) => [
      name,
      {
        description,
        headers: { ...REQUEST_ID, ...FAILURE_HEADERS[name as SharedFailure] },
        content: problemContent(sharedRef("schemas", "Problem")),
      },
    ]),
  ),
};

/** The content of an answer that is a problem. */
export function problemContent(schema: JsonSchemaObject, example?: unknown): DocumentObject {
  return { [PROBLEM_TYPE]: { schema, ...(example !== undefined && { example }) } };
}
