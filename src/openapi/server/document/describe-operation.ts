import { isPlainObject } from "../../../core/json/json-value.ts";
import type { AnyOperation, OperationAnnotations } from "../../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../../core/schema/any-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { DATA_TYPE } from "../../media-types.ts";
import { type InputPlace, placeOf, type QueryParameter } from "../input-place.ts";
import { type DescribedAnswers, declaredErrors, describeResponses } from "./describe-responses.ts";
import { describeData, findExample } from "./described-data.ts";
import { toExactSchema } from "./exact-schema.ts";
import type { DescribedOperation, DocumentObject, PathItem } from "./openapi-document.ts";
import { sharedRef } from "./shared-components.ts";

/** What all operations of a document are described with. */
export interface DescribedApi extends DescribedAnswers {
  readonly examples: Readonly<Record<string, unknown>>;
}

/** Describes the path of one operation: a GET where its input goes into the query, else a POST. */
export function describeOperation(operation: AnyOperation, api: DescribedApi): PathItem {
  const { id, title, description, namespace, tags = [] } = operation;
  const place = placeOf(operation);
  const described: DescribedOperation = {
    operationId: id,
    ...(title !== undefined && { summary: title }),
    description,
    tags: [...new Set([namespace, ...tags])],
    ...(operation._meta?.["deprecated"] === true && { deprecated: true }),
    ...describeInput(operation, place, api),
    responses: describeResponses(operation, api),
    "x-waybill": exactFacts(operation, place),
  };
  return place.place === "query" ? { get: described } : { post: described };
}

function describeInput(
  operation: AnyOperation,
  place: InputPlace,
  api: DescribedApi,
): Pick<DescribedOperation, "parameters" | "requestBody"> {
  const { id, type } = operation;
  const json = inputJson(operation);
  const shown = Object.hasOwn(api.examples, id) ? api.examples[id] : undefined;
  if (place.place === "query" && isObject(json)) {
    const schemas = api.components.addProperties(`${id}.Input`, json);
    const example = findExample(json, shown);
    return {
      parameters: place.parameters.map((parameter) => describeParameter(parameter, schemas, example)),
    };
  }
  const { schema, example, mayBeNothing } = describeData(`${id}.Input`, json, api.components, shown);
  return {
    ...(type === "mutation" && { parameters: [sharedRef("parameters", "IdempotencyKey")] }),
    requestBody: {
      required: !mayBeNothing,
      content: {
        "application/json": { schema, ...(example !== undefined && { example }) },
        [DATA_TYPE]: { schema: {} },
      },
    },
  };
}

function describeParameter(
  { name, type, isList, required }: QueryParameter,
  schemas: Readonly<Record<string, JsonSchemaObject>>,
  example: unknown,
): DocumentObject {
  const plain = isList ? { type: "array", items: { type }, minItems: 1 } : { type };
  const schema: JsonSchemaObject = Object.hasOwn(schemas, name) ? (schemas[name] as JsonSchemaObject) : plain;
  const { description } = schema;
  return {
    name,
    in: "query",
    ...(typeof description === "string" && { description }),
    required,
    ...(isList && { style: "form", explode: true }),
    schema,
    ...(isPlainObject(example) && Object.hasOwn(example, name) && { example: example[name] }),
  };
}

function inputJson({ inputSchema }: AnyOperation): JsonSchema | undefined {
  return inputSchema === undefined ? undefined : toOperationSchema(inputSchema, "input").json;
}

/** What an importer needs to get the operation back as it is; who may call it and how it works stays here. */
function exactFacts(operation: AnyOperation, { place }: InputPlace): DocumentObject {
  const { id, type, version, title, description, tags, annotations, tier, outputSchema } = operation;
  const input = inputJson(operation);
  const errors = declaredErrors(operation).map(({ code, description: text, schema, httpStatus }) => ({
    code,
    ...(text !== undefined && { description: text }),
    ...(schema !== undefined && { schema: toExactSchema(toOperationSchema(schema, "output").json) }),
    ...(httpStatus !== undefined && { httpStatus }),
  }));
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
    ...(input !== undefined && { inputSchema: toExactSchema(input) }),
    ...(outputSchema !== undefined && {
      outputSchema: toExactSchema(toOperationSchema(outputSchema, "output").json),
    }),
    ...(errors.length > 0 && { errors }),
  };
}

const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"] as const;

/** The hints alone, whatever else an untyped caller put beside them. */
function hintsOf(annotations: OperationAnnotations): OperationAnnotations {
  const given = HINTS.filter((hint) => typeof annotations[hint] === "boolean");
  return Object.fromEntries(given.map((hint) => [hint, annotations[hint]]));
}
