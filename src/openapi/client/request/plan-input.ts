import { setOwn } from "../../../core/json/json-value.ts";
import {
  isObject,
  isSchema,
  type JsonSchema,
  type JsonSchemaObject,
} from "../../../core/schema/json-schema.ts";
import { followReferences } from "../../../core/schema/schema-view.ts";
import { mediaKindOf, readDeclaredType } from "../../media-types.ts";
import { withDefinitions } from "../definitions.ts";
import type { BodyPlan, MediaPlan, OperationPlan, ParameterPlan } from "../plan.ts";
import { createRequiredCheck, isSendableHeader } from "./parameters.ts";

/** What bytes are given as; a `Uint8Array` counts as an object. */
const FILE = {
  type: ["string", "object"],
  description: 'Bytes: a Uint8Array, text for its UTF-8, or { "base64": "…", "filename"?, "contentType"? }.',
} as const;

const XML = { type: ["string", "object"], description: "XML, as text." } as const;

/** Describes the input of an operation: a property for each parameter, and the body. */
export function toInputSchema(plan: OperationPlan): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  const isRequired = createRequiredCheck(plan);
  for (const parameter of plan.parameters) {
    if (!isSendableHeader(parameter)) continue;
    setOwn(properties, parameter.key, describe(parameter.schema, parameter));
    if (isRequired(parameter)) required.push(parameter.key);
  }
  const { body } = plan;
  if (body !== undefined) {
    setOwn(properties, body.key, describe(bodySchema(body, plan.definitions), body));
    if (body.required) required.push(body.key);
  }
  const schema = {
    type: "object",
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
  return withDefinitions(schema, plan.definitions);
}

/** What a parameter or body says about itself comes before what its schema says. */
function describe(
  schema: JsonSchema,
  { description, deprecated }: Pick<ParameterPlan, "description" | "deprecated">,
): JsonSchema {
  if (schema === false || (description === undefined && deprecated !== true)) return schema;
  return {
    ...(schema === true ? {} : schema),
    ...(description !== undefined && { description }),
    ...(deprecated === true && { deprecated }),
  };
}

function bodySchema(body: BodyPlan, definitions: OperationPlan["definitions"]): JsonSchema {
  const [media] = body.content;
  if (media === undefined) return FILE;
  const { schema = true } = media;
  switch (mediaKindOf(readDeclaredType(media.mediaType).essence)) {
    case "json":
    case "form":
    case "text":
    case "events":
      return schema;
    case "lines":
    case "records":
      return media.itemSchema === undefined ? true : { type: "array", items: media.itemSchema };
    case "xml":
      return XML;
    case "multipart":
      return multipartSchema(media, definitions);
    case "range":
      return schema === true ? true : { anyOf: [schema, FILE] };
    case "bytes":
      return FILE;
  }
}

/** Files among the parts take bytes in each of their forms. */
function multipartSchema(
  { schema, itemSchema }: MediaPlan,
  definitions: OperationPlan["definitions"],
): JsonSchema {
  const known = schema ?? (itemSchema === undefined ? true : { type: "array" });
  const followed = followReferences(known, { $defs: definitions });
  if (!isObject(followed)) return known;
  let isChanged = false;
  const mend = (each: unknown): unknown => {
    const file = fileSchema(each, definitions);
    if (file !== undefined) isChanged = true;
    return file ?? each;
  };
  const { properties, prefixItems } = followed;
  const { items = itemSchema } = followed;
  const mended: Record<string, unknown> = { ...followed };
  if (isObject(properties)) mended["properties"] = mapProperties(properties, mend);
  if (Array.isArray(prefixItems)) mended["prefixItems"] = prefixItems.map(mend);
  if (items !== undefined) mended["items"] = mend(items);
  return isChanged || items !== followed["items"] ? mended : known;
}

function mapProperties(properties: object, map: (property: unknown) => unknown): Record<string, unknown> {
  const mapped: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) setOwn(mapped, name, map(property));
  return mapped;
}

/** What a file, or a list of files, is given as; nothing for any other part. */
function fileSchema(part: unknown, definitions: OperationPlan["definitions"]): JsonSchema | undefined {
  const follow = (each: unknown) =>
    isSchema(each) ? followReferences(each, { $defs: definitions }) : undefined;
  const followed = follow(part);
  if (!isObject(followed)) return undefined;
  const { description = FILE.description } = followed;
  if (isBinary(followed)) return { type: FILE.type, description };
  const items = followed["type"] === "array" ? follow(followed["items"]) : undefined;
  return isObject(items) && isBinary(items) ? { ...followed, items: FILE } : undefined;
}

/** Tells whether a schema describes bytes: not text, and not text that stands for them. */
export function isBinary(schema: JsonSchemaObject): boolean {
  if (schema["format"] === "binary") return true;
  const { contentMediaType, contentEncoding } = schema;
  if (typeof contentMediaType !== "string" || contentEncoding !== undefined) return false;
  return !/^text\/|json$|xml$/i.test(contentMediaType);
}
