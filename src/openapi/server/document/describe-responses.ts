import { ERROR_CODES, errorTraits } from "../../../core/errors/error-codes.ts";
import type { AnyOperation, ErrorDeclaration } from "../../../core/operation/operation-types.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { EVENTS_TYPE } from "../accept.ts";
import { placeOf } from "../input-place.ts";
import { type DescribedData, describeData } from "./described-data.ts";
import type { DocumentObject } from "./openapi-document.ts";
import type { SchemaComponents } from "./schema-components.ts";
import { schemaJson } from "./schema-json.ts";
import { problemContent, type SharedFailure, sharedRef } from "./shared-components.ts";

/** What the answers of all operations of a document are described with. */
export interface DescribedAnswers {
  readonly components: SchemaComponents;
  /** What an operation is called in the document, and what names of its schemas begin with. */
  readonly nameOf: (operation: Pick<AnyOperation, "id">) => string;
  /** Whether callers are asked who they are. */
  readonly authenticated: boolean;
  /** Hears of what is left out of the document because it cannot be used. */
  readonly warn: (message: string, cause: unknown) => void;
}

type Responses = Record<string, DocumentObject>;

/** Describes every answer an operation may give. */
export function describeResponses(operation: AnyOperation, document: DescribedAnswers): Responses {
  const { id, type } = operation;
  const output = schemaJson(
    () => operation.outputSchema,
    "output",
    (cause) =>
      document.warn(
        `The output schema of "${id}" is refused; the document says nothing of its results.`,
        cause,
      ),
  );
  const data = describeData(`${document.nameOf(operation)}.Output`, output, document);
  return {
    ...(type === "subscription" ? streamed(data) : answered(operation, data)),
    ...failures(operation, document),
  };
}

const REQUEST_ID = { "x-request-id": sharedRef("headers", "RequestId") };
const TRACE = { traceparent: sharedRef("headers", "Traceparent") };

function streamed({ schema }: DescribedData): Responses {
  const description =
    "A stream of events: `next` with `{ data }` in JSON each (`{ wire }` where JSON cannot hold it), then `done`, or `error` with a problem.";
  return {
    200: {
      description: "The values, one event each; `last-event-id` resumes after the one it names.",
      headers: { ...REQUEST_ID, ...TRACE },
      content: { [EVENTS_TYPE]: { schema: { type: "string", description }, "x-waybill-data": schema } },
    },
    204: { description: "The stream that `last-event-id` names is over.", headers: REQUEST_ID },
  };
}

function answered(operation: AnyOperation, data: DescribedData): Responses {
  const { schema, example, mayBeBytes, mayBeNothing } = data;
  const place = placeOf(operation);
  const isPaged = place.place === "query" && place.parameters.some(({ name }) => name === "cursor");
  const headers = {
    ...REQUEST_ID,
    ...TRACE,
    "waybill-facts": sharedRef("headers", "Facts"),
    ...(operation.outputSchema !== undefined && { "waybill-violations": sharedRef("headers", "Violations") }),
    ...(place.place === "query" && { etag: sharedRef("headers", "ETag") }),
    ...(isPaged && { link: sharedRef("headers", "Link") }),
  };
  // Media types of Waybill's own are not listed: generated clients would take a result for any of them.
  const content = {
    "application/json": { schema, ...(example !== undefined && { example }) },
    ...(mayBeBytes && { "application/octet-stream": { schema: {} } }),
    // What came over HTTP keeps the media type of its bytes where no browser would run it.
    ...(mayBeBytes && operation.source === "http" && { "*/*": { schema: {} } }),
  };
  return {
    200: { description: "The data.", headers, content },
    ...(mayBeNothing && { 204: sharedRef("responses", "NoData") }),
    ...(place.place === "query" && { 304: sharedRef("responses", "NotModified") }),
  };
}

function failures(operation: AnyOperation, document: DescribedAnswers): Responses {
  const shared = sharedFailures(operation, document);
  return {
    ...shared,
    ...declaredFailures(operation, document, new Set(Object.keys(shared))),
    default: sharedRef("responses", "Failure"),
  };
}

/** The failures that the API itself answers with, whatever the operation does. */
function sharedFailures(operation: AnyOperation, { authenticated }: DescribedAnswers): Responses {
  const { access, tier, features = [], type } = operation;
  const isGated = (tier !== undefined && tier !== "community") || features.length > 0;
  const isPosted = placeOf(operation).place === "body";
  const isStream = type === "subscription";
  const names: Readonly<Record<number, SharedFailure | false>> = {
    400: "InvalidInput",
    401: (access !== undefined || authenticated) && "NotAuthenticated",
    402: isGated && "UpgradeRequired",
    403: "AccessDenied",
    404: "NotFound",
    406: "NotAcceptable",
    409: (isPosted || isStream) && "Conflict",
    410: isStream && "Gone",
    413: isPosted && "TooLarge",
    414: !isPosted && "AddressTooLong",
    415: isPosted && "UnsupportedBody",
    422: !isStream && "ToolError",
    429: "TooMany",
    500: "ServerFailure",
    503: "Unavailable",
    504: "TimedOut",
  };
  const listed = Object.entries(names).filter(([, name]) => name !== false);
  return Object.fromEntries(listed.map(([status, name]) => [status, sharedRef("responses", String(name))]));
}

/** The errors an operation declares, as a list. */
export function declaredErrors(operation: AnyOperation): readonly ErrorDeclaration[] {
  const errors = errorsOf(operation);
  return Array.isArray(errors)
    ? errors
    : Object.entries(errors).map(([code, rest]) => ({ ...(rest as Omit<ErrorDeclaration, "code">), code }));
}

/** They may be read when they are asked for first, which can fail. */
function errorsOf(operation: AnyOperation): NonNullable<AnyOperation["errors"]> {
  try {
    return operation.errors ?? [];
  } catch {
    return [];
  }
}

/** Beside those declared for a status, others may have it too. */
function declaredFailures(
  operation: AnyOperation,
  document: DescribedAnswers,
  taken: ReadonlySet<string>,
): Responses {
  const byStatus = new Map<number, ErrorDeclaration[]>();
  for (const error of declaredErrors(operation)) {
    const status = error.httpStatus ?? errorTraits(error.code).httpStatus;
    // A client that aborted hears nothing any more.
    if (status === ERROR_CODES.ABORTED.httpStatus) continue;
    byStatus.set(status, [...(byStatus.get(status) ?? []), error]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, errors]) => {
      const described = errors.map((error) => declaredProblem(operation, error, document));
      const anyOf = [...described, sharedRef("schemas", "Problem")];
      const texts = errors.map(({ code, description }) => (description ? `${code}: ${description}` : code));
      if (taken.has(String(status))) texts.push("Or another failure with this status.");
      const content = problemContent({ anyOf });
      return [status, { description: texts.join("\n\n"), headers: REQUEST_ID, content }];
    }),
  );
}

function declaredProblem(
  operation: AnyOperation,
  error: ErrorDeclaration,
  document: DescribedAnswers,
): JsonSchemaObject {
  const { code } = error;
  const json = errorJson(operation, error, document);
  const details =
    json === undefined
      ? undefined
      : document.components.add(`${document.nameOf(operation)}.Error.${code}`, json);
  return {
    allOf: [sharedRef("schemas", "Problem")],
    properties: { code: { const: code }, ...(details !== undefined && { details }) },
    required: ["code"],
  };
}

/** The JSON of the schema that a declared error has for its details. */
export function errorJson(
  { id }: AnyOperation,
  { code, schema }: ErrorDeclaration,
  { warn }: DescribedAnswers,
): JsonSchema | undefined {
  return schemaJson(
    () => schema,
    "output",
    (cause) =>
      warn(`The schema of the error ${code} of "${id}" is refused; the document says nothing of it.`, cause),
  );
}
