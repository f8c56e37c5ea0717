import { isPlainObject } from "../../../core/json/json-value.ts";
import type {
  AnyOperation,
  ErrorDeclaration,
  OperationAnnotations,
} from "../../../core/operation/operation-types.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { IN_PARAMETERS } from "../../component-schemas.ts";
import { type InputPlace, placeOf, type QueryParameter } from "../input-place.ts";
import { type DescribedAnswers, declaredErrors, describeResponses, errorJson } from "./describe-responses.ts";
import { describeData, findExample } from "./described-data.ts";
import type { DescribedOperation, DocumentObject, PathItem } from "./openapi-document.ts";
import { schemaJson } from "./schema-json.ts";
import { sharedRef } from "./shared-components.ts";

/** What all operations of a document are described with. */
export interface DescribedApi extends DescribedAnswers {
  readonly examples: Readonly<Record<string, unknown>>;
}

/** Describes the path of one operation: a GET where its input goes into the query, else a POST. */
export function describeOperation(operation: AnyOperation, api: DescribedApi): PathItem {
  const { title, description, namespace, tags = [] } = operation;
  const place = placeOf(operation);
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
    ...(annotations !== undefined && { annotations: hintsOf(annotations) }),
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

const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"] as const;

/** The hints alone, whatever else an untyped caller put beside them. */
function hintsOf(annotations: OperationAnnotations): OperationAnnotations {
  const given = HINTS.filter((hint) => typeof annotations[hint] === "boolean");
  return Object.fromEntries(given.map((hint) => [hint, annotations[hint]]));
}
