import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { isSequence, mediaKindOf, parseMediaType } from "../../media-types.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import { isStreamed, mayBeUnchanged, successResponses } from "./declared-media.ts";
import { type Definitions, itemsOf, partsOf, typesOf, withDefinitions } from "./schema-view.ts";

/** Accepts `undefined` and nothing else: the data of an empty body. */
const NOTHING: JsonSchema = {
  not: { type: ["null", "boolean", "object", "array", "number", "string"] },
};
const TEXT: JsonSchema = { type: "string" };
const ANYTHING: JsonSchema = {};

/** How an operation is read. */
export interface OutputSchemaOptions {
  /** Whether its answer is read as a stream. @default where every success is one */
  readonly stream?: boolean | undefined;
}

/** Gives the schema of the data of a success, or of each item of a stream; nothing where nothing is known. */
export function toOutputSchema(
  plan: OperationPlan,
  options: OutputSchemaOptions = {},
): JsonSchema | undefined {
  if (plan.method === "HEAD") return undefined;
  const isStream = options.stream ?? isStreamed(plan);
  const alternatives = isStream ? itemAlternatives(plan) : dataAlternatives(plan);
  if (alternatives === undefined) return undefined;
  const different = withoutRepeats(alternatives);
  const [only] = different;
  if (only === undefined || (different.length === 1 && only === NOTHING)) return undefined;
  return withDefinitions(different.length === 1 ? only : { anyOf: different }, plan.definitions);
}

/** Gives the schema that describes each item of a stream; a list described as a whole has such items (OpenAPI 3.2). */
export function toItemSchema(media: MediaPlan | undefined, definitions: Definitions): JsonSchema | undefined {
  return media?.itemSchema ?? itemsOf(media?.schema, definitions) ?? media?.schema;
}

/** One stream of which nothing is known makes all of them unknown. */
function itemAlternatives(plan: OperationPlan): readonly JsonSchema[] | undefined {
  const content = successResponses(plan).flatMap((response) => response.content);
  const streams = content.filter(({ mediaType }) => isSequence(parseMediaType(mediaType).kind));
  const schemas = (streams.length > 0 ? streams : content).map((media) =>
    toItemSchema(media, plan.definitions),
  );
  return schemas.every((schema) => schema !== undefined) ? schemas : undefined;
}

function dataAlternatives(plan: OperationPlan): readonly JsonSchema[] {
  const alternatives = successResponses(plan).flatMap(({ content }) => {
    const schemas = content.flatMap((media) => mediaSchema(media, plan.definitions, content.length > 1));
    return content.length === 0 ? [NOTHING] : schemas;
  });
  if (alternatives.length === 0) return [];
  return mayBeUnchanged(plan) ? [...alternatives, NOTHING] : alternatives;
}

/** Gives the schema of the data of one media type; nothing where another describes it. */
export function dataSchemaOf(media: MediaPlan, definitions: Definitions): JsonSchema | undefined {
  return mediaSchema(media, definitions, true)[0];
}

function mediaSchema(media: MediaPlan, definitions: Definitions, hasOthers: boolean): readonly JsonSchema[] {
  const { kind, type } = parseMediaType(media.mediaType);
  // A document that does not say which type it is has a schema of whatever comes.
  if (mediaKindOf(type) === "range")
    return [isBinary(media.schema, definitions) ? ANYTHING : (media.schema ?? ANYTHING)];
  switch (kind) {
    case "json":
      return [media.schema ?? ANYTHING];
    case "wire":
      // Another way to write the data that the others describe.
      return media.schema === undefined && hasOthers ? [] : [media.schema ?? ANYTHING];
    case "bytes":
      return [ANYTHING];
    case "text":
      return [textSchema(media.schema, definitions)];
    case "events":
    case "lines":
    case "records":
      return [TEXT];
  }
}

function isBinary(schema: JsonSchema | undefined, definitions: Definitions): boolean {
  return partsOf(schema, definitions).some(
    ({ format, contentEncoding, contentMediaType }) =>
      format === "binary" || contentEncoding === "binary" || contentMediaType === "application/octet-stream",
  );
}

/** Text is handed over as it is, so that a schema of what is written in it (XML, say) is none of the data. */
function textSchema(schema: JsonSchema | undefined, definitions: Definitions): JsonSchema {
  const types = typesOf(schema, definitions);
  if (schema === undefined || types.size === 0) return TEXT;
  return types.has("object") || types.has("array") ? TEXT : schema;
}

function withoutRepeats(schemas: readonly JsonSchema[]): readonly JsonSchema[] {
  if (schemas.length < 2) return schemas;
  const seen = new Map<unknown, JsonSchema>();
  for (const schema of schemas) {
    const key = keyOf(schema);
    if (!seen.has(key)) seen.set(key, schema);
  }
  return [...seen.values()];
}

function keyOf(schema: JsonSchema): unknown {
  try {
    return JSON.stringify(schema);
  } catch {
    // Nested too deeply to be written.
    return schema;
  }
}
