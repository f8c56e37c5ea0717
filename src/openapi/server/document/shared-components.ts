import { ERROR_CODES } from "../../../core/errors/error-codes.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { PROBLEM_TYPE } from "../problem-answer.ts";
import type { DescribedOperation, DocumentObject, PathItem } from "./openapi-document.ts";

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
  ToolError: "The operation ran and reported an error. Or this `idempotency-key` was used for another input.",
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
  /** Whether calls can be answered later. */
  readonly hasTasks: boolean;
}

/** What is served beside the operations. */
export function builtInPaths({
  example,
  authenticated,
  hasTasks,
}: BuiltInOptions): Readonly<Record<string, PathItem>> {
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
        hasTasks,
        ...(example !== undefined && { example: { operation: example } }),
      }),
    },
    "/health": { get: asked("health", "Tells whether the server runs", {}) },
    "/ready": {
      get: asked("ready", "Tells whether the server takes calls", {
        503: { description: "It is about to stop.", content: { [JSON_TYPE]: { schema: STATUS } } },
      }),
    },
    ...(hasTasks && taskPaths(authenticated)),
  };
}

const TASK: DocumentObject = {
  type: "object",
  description: "A call that is answered later.",
  properties: {
    id: { type: "string" },
    operation: { type: "string", description: "The id of the operation." },
    status: { enum: ["working", "input_required", "completed", "failed", "cancelled"] },
    message: { type: "string", description: "What its operation said last, or why it failed." },
    progress: {
      type: "object",
      properties: { progress: { type: "number" }, total: { type: "number" } },
      required: ["progress"],
    },
    createdAt: { type: "string", format: "date-time" },
    updatedAt: { type: "string", format: "date-time" },
    expiresAt: { type: "string", format: "date-time", description: "When it is forgotten." },
    endsWithServer: { const: true, description: "A restart of the server loses it." },
    links: {
      type: "object",
      properties: {
        self: TEXT,
        result: { type: "string", description: "Where its result is, once it has ended." },
      },
      required: ["self"],
    },
  },
  required: ["id", "operation", "status", "createdAt", "updatedAt", "expiresAt", "links"],
};

const TASK_HEADERS = {
  location: { description: "Where the task is.", schema: TEXT },
  ...RETRY_AFTER,
};

/** A call that goes on after its request. */
const ACCEPTED: DocumentObject = {
  description: "The call goes on as a task, because of `prefer: respond-async`.",
  headers: TASK_HEADERS,
  content: { [JSON_TYPE]: { schema: TASK } },
};

const TASK_NAMES = {
  tasks: "listTasks",
  task: "getTask",
  "task-result": "getTaskResult",
  cancel: "cancelTask",
} as const;

/** What tasks are asked by, which no operation is called as well. */
export const TASK_IDS: readonly string[] = Object.values(TASK_NAMES);

const TASK_ID = { name: "id", in: "path", required: true, schema: TEXT };
const PREFER = {
  name: "prefer",
  in: "header",
  description: "`respond-async` for a task; `wait=10` waits for so many seconds first.",
  schema: TEXT,
};

/** How tasks are asked. */
function taskPaths(authenticated: boolean): Readonly<Record<string, PathItem>> {
  const failures: Failures = [
    ...(authenticated ? ([[401, "NotAuthenticated"]] as const) : []),
    [404, "NotFound"],
    [503, "Unavailable"],
  ];
  const describe = (
    name: keyof typeof TASK_NAMES,
    summary: string,
    rest: {
      readonly parameters: readonly DocumentObject[];
      readonly responses: Readonly<Record<string, DocumentObject>>;
    },
  ): DescribedOperation => ({
    operationId: TASK_NAMES[name],
    summary,
    tags: [BUILT_IN_TAG],
    parameters: rest.parameters,
    responses: {
      ...rest.responses,
      ...Object.fromEntries(failures.map(([status, failure]) => [status, sharedRef("responses", failure)])),
      default: sharedRef("responses", "Failure"),
    },
    "x-waybill": { endpoint: name === "cancel" ? "task" : name },
  });
  const one = {
    description: "How it is doing.",
    headers: TASK_HEADERS,
    content: { [JSON_TYPE]: { schema: TASK } },
  };
  const list = {
    type: "object",
    properties: { tasks: { type: "array", items: TASK }, nextCursor: TEXT },
    required: ["tasks"],
  };
  return {
    "/tasks": {
      get: describe("tasks", "Lists your tasks, the latest first", {
        parameters: [{ name: "cursor", in: "query", schema: TEXT }],
        responses: { 200: { description: "A page of them.", content: { [JSON_TYPE]: { schema: list } } } },
      }),
    },
    "/tasks/{id}": {
      get: describe("task", "Tells how a task is doing", { parameters: [TASK_ID], responses: { 200: one } }),
      delete: describe("cancel", "Cancels a task", {
        parameters: [TASK_ID],
        responses: { 200: one, 409: sharedRef("responses", "Conflict") },
      }),
    },
    "/tasks/{id}/result": {
      get: describe("task-result", "Gives what a task came to, as its call would have been answered", {
        parameters: [TASK_ID, PREFER],
        responses: {
          200: {
            description: "What came of it.",
            content: { [JSON_TYPE]: { schema: {} }, "*/*": { schema: {} } },
          },
          202: { ...ACCEPTED, description: "It has not ended yet." },
          204: { description: "There is no data." },
        },
      }),
    },
  };
}

interface Posted {
  readonly schema: DocumentObject;
  readonly answer: DocumentObject;
  readonly failures: Failures;
  readonly example?: unknown;
  readonly hasTasks?: boolean;
}

/** Names of what is served beside the operations. */
const NAMES = { batch: "callBatch", call: "callOperation", health: "getHealth", ready: "getReady" } as const;

/** All of them, which no operation has as well. */
export const BUILT_IN_IDS: readonly string[] = Object.values(NAMES);

/** What they are listed under. */
const BUILT_IN_TAG = "waybill";

function posted(endpoint: "batch" | "call", summary: string, described: Posted): DescribedOperation {
  const { schema, answer, failures, example, hasTasks = false } = described;
  const isCall = endpoint === "call";
  return {
    operationId: NAMES[endpoint],
    summary,
    tags: [BUILT_IN_TAG],
    ...(hasTasks && { parameters: [PREFER] }),
    requestBody: {
      required: true,
      content: { [JSON_TYPE]: { schema, ...(example !== undefined && { example }) } },
    },
    responses: {
      200: {
        description: "What came of it.",
        content: { [JSON_TYPE]: answer, ...(isCall && { "*/*": answer }) },
      },
      ...(hasTasks && { 202: ACCEPTED }),
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
