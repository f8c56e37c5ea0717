import { ERROR_CODES, errorTraits } from "../../../core/errors/error-codes.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { annotationsOf } from "../../../core/operation/operation.ts";
import type { AnyOperation, ErrorDeclaration } from "../../../core/operation/operation-types.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { sampleValues } from "../../../core/schema/sample-values.ts";
import { IN_PARAMETERS } from "../../component-schemas.ts";
import { type InputPlace, inputPlaceOf, type QueryParameter } from "../route-table.ts";
import { EVENTS_TYPE } from "../write-answer.ts";
import { hasPointingKey } from "./document-schema.ts";
import type { DescribedOperation, DocumentObject, PathItem } from "./openapi-document.ts";
import type { SchemaComponents } from "./schema-components.ts";
import { schemaJson, takeCompiled } from "./schema-json.ts";
import { problemContent, type SharedFailure, sharedRef } from "./shared-components.ts";

/** What all operations of a document are described with. */
export interface DescribedApi extends DescribedAnswers {
  readonly examples: Readonly<Record<string, unknown>>;
}

/** Describes the path of one operation: a GET where its input goes into the query, else a POST. */
export function describeOperation(operation: AnyOperation, api: DescribedApi): PathItem {
  const { title, description, namespace, tags = [] } = operation;
  const place = inputPlaceOf(operation);
  const input = describeInput(operation, place, api);
  const described: DescribedOperation = {
    operationId: api.nameOf(operation),
    ...(title !== undefined && { summary: title }),
    description,
    tags: [...new Set([namespace, ...tags])],
    ...(isDeprecated(operation) && { deprecated: true }),
    ...input,
    responses: describeResponses(operation, api),
    "x-waybill": exactFacts(operation, { place, parameters: input.parameters }, api),
  };
  return place.place === "query" ? { get: described } : { post: described };
}

/** Operations that were imported from a document say so there. */
function isDeprecated({ _meta }: AnyOperation): boolean {
  return _meta?.["deprecated"] === true;
}

function describeInput(
  operation: AnyOperation,
  place: InputPlace,
  api: DescribedApi,
): Pick<DescribedOperation, "parameters" | "requestBody"> {
  const { id, type } = operation;
  const name = `${api.nameOf(operation)}.Input`;
  const json = inputJson(operation, api);
  const shown = Object.hasOwn(api.examples, id) ? api.examples[id] : undefined;
  if (place.place === "query" && isObject(json)) {
    const schemas = api.components.addProperties(name, json);
    const example = findExample(json, shown);
    return {
      parameters: place.parameters.map((parameter) => describeParameter(parameter, schemas, example)),
    };
  }
  const { components } = api;
  const { schema, example, mayBeNothing } = describeData(name, json, { components, shown });
  return {
    ...(type === "mutation" && { parameters: [sharedRef("parameters", "IdempotencyKey")] }),
    requestBody: {
      required: !mayBeNothing,
      content: { "application/json": { schema, ...(example !== undefined && { example }) } },
    },
  };
}

function describeParameter(
  { name, type, isList, required, isEmptyByDefault }: QueryParameter,
  schemas: Readonly<Record<string, JsonSchemaObject>>,
  example: unknown,
): DocumentObject {
  const plain = isList ? { type: "array", items: { type } } : { type };
  const { description, ...schema }: JsonSchemaObject = Object.hasOwn(schemas, name)
    ? (schemas[name] as JsonSchemaObject)
    : plain;
  return {
    name,
    in: "query",
    ...(typeof description === "string" && { description }),
    // An empty list is written as nothing.
    required: required && !isEmptyByDefault,
    ...(isList && { style: "form", explode: true }),
    schema,
    ...(isPlainObject(example) && Object.hasOwn(example, name) && { example: example[name] }),
  };
}

function inputJson(operation: AnyOperation, { warn }: DescribedApi): JsonSchema | undefined {
  return schemaJson(
    () => operation.inputSchema,
    "input",
    (cause) =>
      warn(
        `The input schema of "${operation.id}" is refused; the document says that it takes anything.`,
        cause,
      ),
  );
}

/** What an importer needs to get the operation back as it is; who may call it and how it works stays here. */
function exactFacts(
  operation: AnyOperation,
  {
    place: { place },
    parameters,
  }: { readonly place: InputPlace; readonly parameters: DescribedOperation["parameters"] },
  api: DescribedApi,
): DocumentObject {
  const { id, type, version, title, description, tags, annotations, tier } = operation;
  const input = inputJson(operation, api);
  // Whether it can be used was told already.
  const output = schemaJson(() => operation.outputSchema, "output");
  const errors = declaredErrors(operation).map((error) => exactError(operation, error, api));
  return {
    id,
    type,
    version,
    takes: place,
    ...(title !== undefined && { title }),
    // Importers make up a description where a document has none.
    ...(description === "" && { description }),
    ...(tags !== undefined && { tags }),
    ...(annotations !== undefined && { annotations: annotationsOf(annotations) }),
    ...(tier !== undefined && { tier }),
    ...(input !== undefined && {
      inputSchema: saidByParameters(api.components.exactly(input), place === "query" ? parameters : []),
    }),
    ...(output !== undefined && { outputSchema: api.components.exactly(output) }),
    ...(errors.length > 0 && { errors }),
    ...(isDeprecated(operation) && { deprecated: true }),
  };
}

/** Leaves properties out of a schema where importers get the same ones from the parameters. */
function saidByParameters(
  exact: JsonSchema | string,
  parameters: readonly DocumentObject[] = [],
): JsonSchema | string {
  const properties = isObject(exact) ? exact["properties"] : undefined;
  if (!isObject(exact) || !isObject(properties) || parameters.length === 0) return exact;
  const names = Object.keys(properties);
  const isSaid = parameters.every(({ name, description, schema }, at) => {
    const own = names[at] === name ? properties[String(name)] : undefined;
    return isEqual(own, { ...(schema as object), ...(description !== undefined && { description }) });
  });
  return isSaid && names.length === parameters.length ? { ...exact, properties: IN_PARAMETERS } : exact;
}

function exactError(operation: AnyOperation, error: ErrorDeclaration, api: DescribedApi): DocumentObject {
  const { code, description, httpStatus } = error;
  const schema = errorJson(operation, error, api);
  return {
    code,
    ...(description !== undefined && { description }),
    ...(schema !== undefined && { schema: api.components.exactly(schema) }),
    ...(httpStatus !== undefined && { httpStatus }),
  };
}

/** What the answers of all operations of a document are described with. */
interface DescribedAnswers {
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
function describeResponses(operation: AnyOperation, document: DescribedAnswers): Responses {
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
  const place = inputPlaceOf(operation);
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
  const isPosted = inputPlaceOf(operation).place === "body";
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
function declaredErrors(operation: AnyOperation): readonly ErrorDeclaration[] {
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
function errorJson(
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

/** What can be told about the values of a schema by trying some. */
interface TriedSchema {
  /** A value that passes; nothing where none was found. */
  readonly example: unknown;
  readonly mayBeNothing: boolean;
  readonly mayBeBytes: boolean;
}

/** What a document says about values of a schema. */
interface DescribedData extends TriedSchema {
  /** Refers to the schema among the components. */
  readonly schema: JsonSchemaObject;
}

/** Puts a schema among the components and finds out what it takes; `shown` is an example to prefer. */
function describeData(
  name: string,
  json: JsonSchema | undefined,
  { components, shown }: { readonly components: SchemaComponents; readonly shown?: unknown },
): DescribedData {
  if (json === undefined)
    return { schema: {}, example: writable(shown), mayBeNothing: true, mayBeBytes: true };
  const schema = components.add(name, json);
  return { ...trySchema(json), example: findExample(json, shown), schema };
}

/** The example that is given, where it passes; one made for the schema, where none is given. */
function findExample(json: JsonSchema, shown: unknown): unknown {
  if (shown === undefined) return trySchema(json).example;
  const passes = writable(shown) !== undefined && interpreted(json).check(shown);
  return passes ? shown : undefined;
}

/** One schema is described once for each view of an API, and tried once. */
const tried = new WeakMap<JsonSchemaObject, TriedSchema>();

function trySchema(json: JsonSchema): TriedSchema {
  const known = isObject(json) ? tried.get(json) : undefined;
  if (known !== undefined) return known;
  const compiled = (isObject(json) ? takeCompiled(json) : undefined) ?? interpreted(json);
  const found = {
    example: sampleValues(json).find((value) => isShort(value) && compiled.check(value)),
    mayBeNothing: compiled.check(undefined),
    mayBeBytes: compiled.check(new Uint8Array()),
  };
  if (isObject(json)) tried.set(json, found);
  return found;
}

/** A few values are not worth the code that would be made for them. */
function interpreted(json: JsonSchema): ReturnType<typeof compileSchema> {
  return compileSchema(json, { codegen: false });
}

/** Characters of an example that is made up, or taken from the schema, which says it anyway. */
const MAX_EXAMPLE = 2_000;

function isShort(value: unknown): boolean {
  return writable(value) !== undefined && (JSON.stringify(value)?.length ?? 0) <= MAX_EXAMPLE;
}

/** Tools would take some keys of an example for references. */
function writable(value: unknown): unknown {
  return hasPointingKey(value) ? undefined : value;
}
