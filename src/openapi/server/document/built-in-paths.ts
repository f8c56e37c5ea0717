import type { DescribedOperation, DocumentObject, PathItem } from "./openapi-document.ts";
import { type SharedFailure, sharedRef } from "./shared-components.ts";

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

type Failures = readonly (readonly [status: number, name: SharedFailure])[];

const REFUSALS: Failures = [
  [400, "InvalidInput"],
  [403, "AccessDenied"],
  [406, "NotAcceptable"],
  [413, "TooLarge"],
  [415, "UnsupportedBody"],
  [429, "TooMany"],
  [500, "ServerFailure"],
  [503, "Unavailable"],
];

/** Those of any operation besides. */
const CALL_FAILURES: Failures = [
  [401, "NotAuthenticated"],
  [402, "UpgradeRequired"],
  [404, "NotFound"],
  [409, "Conflict"],
  [410, "Gone"],
  [422, "ToolError"],
  [504, "TimedOut"],
];

/** What the paths beside the operations are described with. */
interface BuiltInOptions {
  /** The id of an operation to show. */
  readonly example: string | undefined;
  /** Whether callers are asked who they are. */
  readonly authenticated: boolean;
}

/** What is served beside the operations. */
export function builtInPaths({ example, authenticated }: BuiltInOptions): Readonly<Record<string, PathItem>> {
  const ofBatch: Failures = authenticated ? [...REFUSALS, [401, "NotAuthenticated"]] : REFUSALS;
  return {
    "/batch": {
      post: posted("batch", "Calls several operations", {
        schema: { type: "array", items: CALL_SCHEMA },
        answer: { schema: { type: "array", items: BATCH_ANSWER } },
        failures: ofBatch,
        ...(example !== undefined && { example: [{ operation: example }] }),
      }),
    },
    "/call": {
      post: posted("call", "Calls an operation by id", {
        schema: CALL_SCHEMA,
        answer: { schema: {} },
        failures: [...REFUSALS, ...CALL_FAILURES],
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
  readonly failures: Failures;
  readonly example?: unknown;
}

/** Names of what is served beside the operations. */
const NAMES = { batch: "callBatch", call: "callOperation", health: "getHealth", ready: "getReady" } as const;

/** All of them, which no operation has as well. */
export const BUILT_IN_IDS: readonly string[] = Object.values(NAMES);

/** What they are listed under. */
const BUILT_IN_TAG = "waybill";

function posted(endpoint: "batch" | "call", summary: string, described: Posted): DescribedOperation {
  const { schema, answer, failures, example } = described;
  const isCall = endpoint === "call";
  return {
    operationId: NAMES[endpoint],
    summary,
    tags: [BUILT_IN_TAG],
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
      ...Object.fromEntries(failures.map(([status, name]) => [status, sharedRef("responses", name)])),
      default: sharedRef("responses", "Failure"),
    },
    "x-waybill": { endpoint },
  };
}

function asked(
  endpoint: "health" | "ready",
  summary: string,
  more: Readonly<Record<string, DocumentObject>>,
): DescribedOperation {
  return {
    operationId: NAMES[endpoint],
    summary,
    tags: [BUILT_IN_TAG],
    security: [],
    responses: {
      200: { description: "It does.", content: { [JSON_TYPE]: { schema: STATUS } } },
      ...more,
      default: sharedRef("responses", "Failure"),
    },
    "x-waybill": { endpoint },
  };
}
