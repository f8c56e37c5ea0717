import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { essenceOf, mediaKindOf } from "../../media-types.ts";
import type { BodyPlan, EncodingPlan, MediaPlan, ParameterStyle, ResponsePlan } from "../plan.ts";

type Fields = Record<string, unknown>;

/** Makes schemas fit, and looks behind their references. */
export interface SchemaUse {
  use(schema: unknown): JsonSchema;
  peek(schema: JsonSchema | undefined): JsonSchema | undefined;
  readonly notes: Set<string>;
}

const STATUS = /^(?:[1-5][0-9]{2}|[1-5]XX|DEFAULT)$/;

/** Makes the plan of the body an operation takes. */
export function planBody(
  body: unknown,
  contentType: string | undefined,
  schemas: SchemaUse,
): BodyPlan | undefined {
  if (!isObject(body)) return undefined;
  const content = planContent(body["content"], schemas);
  if (content.length === 0) {
    schemas.notes.add("The body has no media type; it was left out.");
    return undefined;
  }
  const sorted = content.sort((a, b) => mediaRank(a.mediaType) - mediaRank(b.mediaType));
  const { description } = body;
  return {
    key: "body",
    required: body["required"] === true,
    description: typeof description === "string" ? description : undefined,
    content: contentType === undefined ? sorted : preferred(sorted, contentType),
  };
}

/** Puts what sends the type that is asked for first; a range becomes that type. */
function preferred(content: readonly MediaPlan[], contentType: string): readonly MediaPlan[] {
  const same = content.find(({ mediaType }) => essenceOf(mediaType) === essenceOf(contentType));
  const found = same ?? content.find(({ mediaType }) => sendsType(mediaType, contentType));
  if (found === undefined) return content;
  const first = same ?? { ...found, mediaType: contentType };
  return [first, ...content.filter((media) => media !== same)];
}

/** Tells whether a body of a declared type, or range such as `image/*`, may be of another. */
export function sendsType(declared: string, contentType: string): boolean {
  const [range, asked] = [essenceOf(declared), essenceOf(contentType)];
  return range === asked || range === "*/*" || (range.endsWith("/*") && asked.startsWith(range.slice(0, -1)));
}

/** Makes the plans of what an operation may answer with. */
export function planResponses(responses: unknown, schemas: SchemaUse): ResponsePlan[] {
  if (!isObject(responses)) return [];
  const plans: ResponsePlan[] = [];
  for (const [key, response] of Object.entries(responses)) {
    const status = key.toUpperCase();
    if (!STATUS.test(status))
      schemas.notes.add(`${JSON.stringify(key)} is no status; the response was left out.`);
    if (!STATUS.test(status) || !isObject(response)) continue;
    const { description } = response;
    plans.push({
      status: status === "DEFAULT" ? "default" : status,
      description: typeof description === "string" ? description : undefined,
      content: planContent(response["content"], schemas),
      headers: planHeaders(response["headers"], schemas, true),
    });
  }
  return plans;
}

function planContent(content: unknown, schemas: SchemaUse): MediaPlan[] {
  if (!isObject(content)) return [];
  const plans: MediaPlan[] = [];
  for (const [mediaType, media] of Object.entries(content)) {
    if (!/^[^\s/]+\/[^\s/]/.test(mediaType)) {
      schemas.notes.add(`${JSON.stringify(mediaType)} is no media type; it was left out.`);
    } else if (isObject(media)) plans.push(planMedia(mediaType, media, schemas));
  }
  return plans;
}

function planMedia(mediaType: string, media: Fields, schemas: SchemaUse): MediaPlan {
  const { schema, itemSchema, encoding, prefixEncoding, itemEncoding } = media;
  return {
    mediaType,
    schema: schema === undefined ? undefined : asWritten(schemas.use(schema), mediaType, schemas),
    itemSchema: itemSchema === undefined ? undefined : schemas.use(itemSchema),
    encoding: isObject(encoding) ? planEncodings(encoding, schemas) : undefined,
    ...(Array.isArray(prefixEncoding) && {
      prefixEncoding: prefixEncoding.map((entry) => planEncoding(entry, schemas)),
    }),
    ...(isObject(itemEncoding) && { itemEncoding: planEncoding(itemEncoding, schemas) }),
  };
}

/** What is neither JSON nor a form is one text or bytes, whatever data it is described to hold. */
function asWritten(schema: JsonSchema, mediaType: string, schemas: SchemaUse): JsonSchema {
  const kind = mediaKindOf(essenceOf(mediaType));
  const isText = kind === "text" || kind === "xml";
  const isOctets = kind === "bytes" || kind === "range";
  if ((!isText && !isOctets) || mediaType.startsWith("*/") || isBytes(schema)) return schema;
  const behind = schemas.peek(schema);
  const description =
    isObject(behind) && typeof behind["description"] === "string" ? behind["description"] : undefined;
  const about = description === undefined ? {} : { description };
  if (isOctets) return { ...about, contentMediaType: essenceOf(mediaType) };
  return allowsText(behind) ? schema : { ...about, type: "string", contentMediaType: essenceOf(mediaType) };
}

function isBytes(schema: JsonSchema): boolean {
  return isObject(schema) && schema["type"] === undefined && schema["contentMediaType"] !== undefined;
}

function allowsText(schema: JsonSchema | undefined): boolean {
  if (!isObject(schema)) return schema !== false;
  const { type } = schema;
  if (type !== undefined) return Array.isArray(type) ? type.includes("string") : type === "string";
  return !["allOf", "anyOf", "oneOf", "properties", "items"].some((keyword) =>
    Object.hasOwn(schema, keyword),
  );
}

function planEncodings(encoding: Fields, schemas: SchemaUse): Record<string, EncodingPlan> {
  const plans: Record<string, EncodingPlan> = {};
  for (const [name, entry] of Object.entries(encoding)) {
    if (isObject(entry)) plans[name] = planEncoding(entry, schemas);
  }
  return plans;
}

function planEncoding(entry: Fields, schemas: SchemaUse): EncodingPlan {
  const { contentType, style, explode, separator, allowReserved, headers } = entry;
  return {
    contentType: typeof contentType === "string" ? contentType : undefined,
    style: isFormStyle(style) ? style : undefined,
    explode: typeof explode === "boolean" ? explode : undefined,
    ...(typeof separator === "string" && { separator }),
    allowReserved: allowReserved === true ? true : undefined,
    headers: headers === undefined ? undefined : planHeaders(headers, schemas, false),
  };
}

function isFormStyle(style: unknown): style is ParameterStyle {
  return (
    typeof style === "string" && ["form", "spaceDelimited", "pipeDelimited", "deepObject"].includes(style)
  );
}

function planHeaders(headers: unknown, schemas: SchemaUse, lower: boolean): Record<string, JsonSchema> {
  const plans: Record<string, JsonSchema> = {};
  if (!isObject(headers)) return plans;
  for (const [name, header] of Object.entries(headers)) {
    const schema = isObject(header) ? header["schema"] : undefined;
    const plan = schema === undefined ? {} : schemas.use(schema);
    plans[lower ? name.toLowerCase() : name] = plan;
  }
  return plans;
}

const ORDER: readonly ((type: string) => boolean)[] = [
  (type) => type === "application/json",
  (type) => mediaKindOf(type) === "json",
  (type) => mediaKindOf(type) === "form",
  (type) => type === "multipart/form-data",
  (type) => type.startsWith("text/"),
];

/** Where a media type stands among those a body may have: less is better. */
function mediaRank(mediaType: string): number {
  const type = essenceOf(mediaType);
  const rank = ORDER.findIndex((test) => test(type));
  return rank === -1 ? ORDER.length : rank;
}
