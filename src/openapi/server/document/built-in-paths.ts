import type { DescribedOperation, DocumentObject, PathItem } from "./openapi-document.ts";
import { sharedRef } from "./shared-components.ts";

const JSON_TYPE = "application/json";

const CALL_SCHEMA: DocumentObject = {
  type: "object",
  properties: {
    operation: { type: "string", description: "The id of the operation." },
    input: { description: "What the operation takes." },
    timeoutMs: { type: "number", minimum: 0, description: "How long to wait, in milliseconds." },
  },
  required: ["operation"],
};

const BATCH_ANSWER: DocumentObject = {
  type: "object",
  properties: {
    status: { type: "integer" },
    headers: { type: "object" },
    body: { description: "The data, or a problem." },
  },
  required: ["status"],
};

const STATUS: DocumentObject = { type: "object", properties: { status: { type: "string" } } };

/** What is served beside the operations; `call` and `batch` have no id of their own, which an operation might have too. */
export function builtInPaths(example: string | undefined): Readonly<Record<string, PathItem>> {
  return {
    "/batch": {
      post: posted("batch", "Calls several operations", {
        schema: { type: "array", items: CALL_SCHEMA },
        answer: { schema: { type: "array", items: BATCH_ANSWER } },
        ...(example !== undefined && { example: [{ operation: example }] }),
      }),
    },
    "/call": {
      post: posted("call", "Calls an operation by id", {
        schema: CALL_SCHEMA,
        answer: { schema: {} },
        ...(example !== undefined && { example: { operation: example } }),
      }),
    },
    "/health": { get: asked("health", "Tells whether the server runs", {}) },
    "/ready": {
      get: asked("ready", "Tells whether the server takes calls", {
        503: { description: "It is about to stop.", content: { [JSON_TYPE]: { schema: STATUS } } },
      }),
    },
  };
}

interface Posted {
  readonly schema: DocumentObject;
  readonly answer: DocumentObject;
  readonly example?: unknown;
}

function posted(endpoint: string, summary: string, { schema, answer, example }: Posted): DescribedOperation {
  const isCall = endpoint === "call";
  return {
    summary,
    requestBody: {
      required: true,
      content: { [JSON_TYPE]: { schema, ...(example !== undefined && { example }) } },
    },
    responses: {
      200: {
        description: "What came of it.",
        content: { [JSON_TYPE]: answer, ...(isCall && { "*/*": answer }) },
      },
      ...(isCall && { 204: { description: "There is no data." } }),
      default: sharedRef("responses", "Failure"),
    },
    "x-waybill": { endpoint },
  };
}

function asked(
  endpoint: string,
  summary: string,
  more: Readonly<Record<string, DocumentObject>>,
): DescribedOperation {
  return {
    summary,
    security: [],
    responses: {
      200: { description: "It does.", content: { [JSON_TYPE]: { schema: STATUS } } },
      ...more,
      default: sharedRef("responses", "Failure"),
    },
    "x-waybill": { endpoint },
  };
}
