import { ERROR_CODES, errorTraits } from "../../../core/errors/error-codes.ts";
import type { AnyOperation, ErrorDeclaration } from "../../../core/operation/operation-types.ts";
import type { ResultFormat } from "../../../core/result/result-format.ts";
import { toOperationSchema } from "../../../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { DATA_TYPE } from "../../media-types.ts";
import { ENVELOPE_TYPE, EVENTS_TYPE, formatType } from "../accept.ts";
import { placeOf } from "../input-place.ts";
import { type DescribedData, describeData } from "./described-data.ts";
import type { DocumentObject } from "./openapi-document.ts";
import type { SchemaComponents } from "./schema-components.ts";
import { envelopeSchema, problemContent, sharedRef, toolResultSchema } from "./shared-components.ts";

/** What the answers of all operations of a document are described with. */
export interface DescribedAnswers {
  readonly components: SchemaComponents;
  readonly formats: readonly ResultFormat[];
  /** Whether every caller has to authenticate. */
  readonly authenticated: boolean;
}

type Responses = Record<string, DocumentObject>;

/** Describes every answer an operation may give. */
export function describeResponses(operation: AnyOperation, document: DescribedAnswers): Responses {
  const { outputSchema, type } = operation;
  const output = outputSchema === undefined ? undefined : toOperationSchema(outputSchema, "output").json;
  const data = describeData(`${operation.id}.Output`, output, document.components);
  return {
    ...(type === "subscription" ? streamed(data) : answered(operation, data, document)),
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
  };
}

function answered(operation: AnyOperation, data: DescribedData, document: DescribedAnswers): Responses {
  const { schema, example, mayBeBytes, mayBeNothing } = data;
  const place = placeOf(operation);
  const isPaged = place.place === "query" && place.parameters.some(({ name }) => name === "cursor");
  const headers = {
    ...REQUEST_ID,
    ...TRACE,
    "waybill-facts": sharedRef("headers", "Facts"),
    ...(place.place === "query" && { etag: sharedRef("headers", "ETag") }),
    ...(isPaged && { link: sharedRef("headers", "Link") }),
  };
  const content = {
    "application/json": { schema, ...(example !== undefined && { example }) },
    [ENVELOPE_TYPE]: { schema: envelopeSchema(schema) },
    [DATA_TYPE]: { schema: {} },
    ...(mayBeBytes && { "application/octet-stream": { schema: {} } }),
    // What came over HTTP keeps the media type of its bytes where no browser would run it.
    ...(mayBeBytes && operation.source === "http" && { "*/*": { schema: {} } }),
    ...formatContent(operation, document),
  };
  return {
    200: { description: "The data.", headers, content },
    ...(mayBeNothing && { 204: { description: "There is no data.", headers: { ...REQUEST_ID, ...TRACE } } }),
    ...(place.place === "query" && {
      304: {
        description: "Nothing has changed since the answer named by `if-none-match`.",
        headers: REQUEST_ID,
      },
    }),
  };
}

function formatContent(operation: AnyOperation, { formats, components }: DescribedAnswers): DocumentObject {
  return Object.fromEntries(
    formats.map((format) => {
      const schema = format.outputSchema(operation);
      const structured =
        schema === undefined ? undefined : components.add(`${operation.id}.Output.${format.name}`, schema);
      return [formatType(format.name), { schema: toolResultSchema(structured) }];
    }),
  );
}

function failures(operation: AnyOperation, document: DescribedAnswers): Responses {
  const { access, tier, features = [], type } = operation;
  const isGated = (tier !== undefined && tier !== "community") || features.length > 0;
  const shared: Responses = {
    400: sharedRef("responses", "InvalidInput"),
    ...((access !== undefined || document.authenticated) && {
      401: sharedRef("responses", "NotAuthenticated"),
    }),
    ...(isGated && { 402: sharedRef("responses", "UpgradeRequired") }),
    ...(access !== undefined && { 403: sharedRef("responses", "AccessDenied") }),
    ...(type !== "subscription" && { 422: sharedRef("responses", "ToolError") }),
  };
  return {
    ...shared,
    ...declaredFailures(operation, document, new Set(Object.keys(shared))),
    default: sharedRef("responses", "Failure"),
  };
}

/** The errors an operation declares, as a list. */
export function declaredErrors({ errors = [] }: AnyOperation): readonly ErrorDeclaration[] {
  return Array.isArray(errors)
    ? errors
    : Object.entries(errors).map(([code, rest]) => ({ ...(rest as Omit<ErrorDeclaration, "code">), code }));
}

/** Beside those declared for a status, others may have it too. */
function declaredFailures(
  operation: AnyOperation,
  { components, formats }: DescribedAnswers,
  taken: ReadonlySet<string>,
): Responses {
  const byStatus = new Map<number, ErrorDeclaration[]>();
  for (const error of declaredErrors(operation)) {
    const status = error.httpStatus ?? errorTraits(error.code).httpStatus;
    // A client that aborted hears nothing any more.
    if (status === ERROR_CODES.ABORTED.httpStatus) continue;
    byStatus.set(status, [...(byStatus.get(status) ?? []), error]);
  }
  const asked = formats.map(({ name }) => [formatType(name), { schema: toolResultSchema() }]);
  return Object.fromEntries(
    [...byStatus].map(([status, errors]) => {
      const described = errors.map((error) => declaredProblem(operation, error, components));
      const anyOf = [...described, sharedRef("schemas", "Problem")];
      const texts = errors.map(({ code, description }) => (description ? `${code}: ${description}` : code));
      if (taken.has(String(status))) texts.push("Or another failure with this status.");
      const content = { ...problemContent({ anyOf }), ...envelopeContent(), ...Object.fromEntries(asked) };
      return [status, { description: texts.join("\n\n"), headers: REQUEST_ID, content }];
    }),
  );
}

/** An operation may also say no with a code of that status, which the envelope shows. */
function envelopeContent(): DocumentObject {
  return { [ENVELOPE_TYPE]: { schema: envelopeSchema({}) } };
}

function declaredProblem(
  operation: AnyOperation,
  { code, schema }: ErrorDeclaration,
  components: SchemaComponents,
): JsonSchemaObject {
  const details =
    schema === undefined
      ? undefined
      : components.add(`${operation.id}.Error.${code}`, toOperationSchema(schema, "output").json);
  return {
    allOf: [sharedRef("schemas", "Problem")],
    properties: { code: { const: code }, ...(details !== undefined && { details }) },
    required: ["code"],
  };
}
