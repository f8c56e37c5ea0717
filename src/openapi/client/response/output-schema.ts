import { isSchema, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { isSequence, mediaKindOf, parseMediaType } from "../../media-types.ts";
import { type Definitions, viewWithDefinitions, withDefinitions } from "../definitions.ts";
import type { MediaPlan, OperationPlan, ResponsePlan } from "../plan.ts";

/** Accepts `undefined` and nothing else: the data of an empty body. */
const NOTHING: JsonSchema = {
  not: { type: ["null", "boolean", "object", "array", "number", "string"] },
};
const TEXT: JsonSchema = { type: "string" };
const ANYTHING: JsonSchema = {};

/** How an operation is read. */
interface OutputSchemaOptions {
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
  if (media === undefined || media.itemSchema !== undefined) return media?.itemSchema;
  const { parts } = viewWithDefinitions(media.schema, definitions);
  const list = parts.find(({ type, items }) => [type].flat().includes("array") && isSchema(items));
  return (list?.["items"] as JsonSchema | undefined) ?? media.schema;
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
export function mediaSchemaOf(media: MediaPlan, definitions: Definitions): JsonSchema | undefined {
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
  return viewWithDefinitions(schema, definitions).parts.some(
    ({ format, contentEncoding, contentMediaType }) =>
      format === "binary" || contentEncoding === "binary" || contentMediaType === "application/octet-stream",
  );
}

/** Text is handed over as it is, so that a schema of what is written in it (XML, say) is none of the data. */
function textSchema(schema: JsonSchema | undefined, definitions: Definitions): JsonSchema {
  const { types } = viewWithDefinitions(schema, definitions);
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

/** Gives what the document says of a status: that very one, its class, or the rest. */
export function responseFor(plan: OperationPlan, status: number): ResponsePlan | undefined {
  const { responses } = plan;
  const exact = String(status);
  const range = `${exact.charAt(0)}XX`;
  return (
    responses.find((response) => response.status === exact) ??
    responses.find((response) => response.status.toUpperCase() === range) ??
    responses.find((response) => response.status === "default")
  );
}

/** Tells whether the document names a status by its number or its range; what is said of the rest names none. */
export function isStatusDeclared(plan: OperationPlan, status: number): boolean {
  const found = responseFor(plan, status);
  return found !== undefined && found.status !== "default";
}

/** Gives what the document says of a media type: that very one, or a range it lies in. */
export function mediaFor(response: ResponsePlan | undefined, type: string): MediaPlan | undefined {
  if (response === undefined || type === "") return undefined;
  const range = `${type.slice(0, type.indexOf("/"))}/*`;
  for (const wanted of [type, range, "*/*"]) {
    const found = response.content.find((media) => parseMediaType(media.mediaType).type === wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Gives the responses that are a success; what is said of the rest counts where nothing is said of success. */
export function successResponses(plan: OperationPlan): readonly ResponsePlan[] {
  const found = plan.responses.filter(({ status }) => /^2(?:XX|[0-9]{2})$/i.test(status));
  return found.length > 0 ? found : plan.responses.filter(({ status }) => status === "default");
}

/** Tells whether every success is a sequence of items. */
function isStreamed(plan: OperationPlan): boolean {
  const content = successResponses(plan).flatMap((response) => response.content);
  return content.length > 0 && content.every(({ mediaType }) => isSequence(parseMediaType(mediaType).kind));
}

const CONDITIONS = new Set([
  "if-none-match",
  "if-modified-since",
  "if-match",
  "if-unmodified-since",
  "if-range",
]);

/** Tells whether an operation may be answered that nothing changed: it says so, or can be asked. */
export function mayBeUnchanged(plan: OperationPlan): boolean {
  return (
    plan.responses.some(({ status }) => status === "304" || status.toUpperCase() === "3XX") ||
    plan.parameters.some(
      (parameter) => parameter.in === "header" && CONDITIONS.has(parameter.name.toLowerCase()),
    )
  );
}
