import type { JsonSchema } from "./json-schema.ts";

const DRAFT_2020 = "https://json-schema.org/draft/2020-12";
const self = { $dynamicRef: "#meta" };
const selfList = { type: "array", minItems: 1, items: self };
const selfMap = { type: "object", additionalProperties: self };
const count = { type: "integer", minimum: 0 };
const names = { type: "array", items: { type: "string" }, uniqueItems: true };
const simpleTypes = { enum: ["array", "boolean", "integer", "null", "number", "object", "string"] };
const typeKeyword = {
  anyOf: [simpleTypes, { type: "array", items: simpleTypes, minItems: 1, uniqueItems: true }],
};

function vocabulary(
  name: string,
  properties: Record<string, unknown>,
  more: Record<string, unknown> = {},
): JsonSchema {
  return {
    $schema: `${DRAFT_2020}/schema`,
    $id: `${DRAFT_2020}/meta/${name}`,
    $dynamicAnchor: "meta",
    type: ["object", "boolean"],
    properties,
    ...more,
  };
}

const VOCABULARIES: Readonly<Record<string, () => JsonSchema>> = {
  core: () => {
    const anchor = { type: "string", pattern: "^[A-Za-z_][-A-Za-z0-9._]*$" };
    const reference = { type: "string" };
    return vocabulary("core", {
      $id: { type: "string", pattern: "^[^#]*#?$" },
      $schema: reference,
      $ref: reference,
      $anchor: anchor,
      $dynamicRef: reference,
      $dynamicAnchor: anchor,
      $vocabulary: { type: "object", additionalProperties: { type: "boolean" } },
      $comment: { type: "string" },
      $defs: selfMap,
    });
  },
  applicator: () =>
    vocabulary("applicator", {
      prefixItems: selfList,
      items: self,
      contains: self,
      additionalProperties: self,
      properties: selfMap,
      patternProperties: selfMap,
      dependentSchemas: selfMap,
      propertyNames: self,
      if: self,
      then: self,
      else: self,
      allOf: selfList,
      anyOf: selfList,
      oneOf: selfList,
      not: self,
    }),
  unevaluated: () => vocabulary("unevaluated", { unevaluatedItems: self, unevaluatedProperties: self }),
  validation: () => vocabulary("validation", { ...validationKeywords(), type: typeKeyword }),
  "meta-data": () => vocabulary("meta-data", annotationKeywords()),
  "format-annotation": () => vocabulary("format-annotation", { format: { type: "string" } }),
  content: () =>
    vocabulary("content", {
      contentEncoding: { type: "string" },
      contentMediaType: { type: "string" },
      contentSchema: self,
    }),
};

function validationKeywords(): Record<string, unknown> {
  return {
    const: true,
    enum: { type: "array", items: true },
    multipleOf: { type: "number", exclusiveMinimum: 0 },
    maximum: { type: "number" },
    exclusiveMaximum: { type: "number" },
    minimum: { type: "number" },
    exclusiveMinimum: { type: "number" },
    maxLength: count,
    minLength: count,
    pattern: { type: "string" },
    maxItems: count,
    minItems: count,
    uniqueItems: { type: "boolean" },
    maxContains: count,
    minContains: count,
    maxProperties: count,
    minProperties: count,
    required: names,
    dependentRequired: { type: "object", additionalProperties: names },
  };
}

function annotationKeywords(): Record<string, unknown> {
  return {
    title: { type: "string" },
    description: { type: "string" },
    default: true,
    deprecated: { type: "boolean" },
    readOnly: { type: "boolean" },
    writeOnly: { type: "boolean" },
    examples: { type: "array", items: true },
  };
}

function draft2020(): JsonSchema {
  const parts = Object.keys(VOCABULARIES);
  return vocabulary(
    "",
    {},
    {
      $id: `${DRAFT_2020}/schema`,
      $vocabulary: Object.fromEntries(parts.map((name) => [`${DRAFT_2020}/vocab/${name}`, true])),
      allOf: parts.map((name) => ({ $ref: `meta/${name}` })),
    },
  );
}

function draft07(): JsonSchema {
  const root = { $ref: "#" };
  const list = { type: "array", minItems: 1, items: root };
  const map = { type: "object", additionalProperties: root };
  const { dependentRequired: _, minContains: _min, maxContains: _max, ...validation } = validationKeywords();
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: "http://json-schema.org/draft-07/schema#",
    type: ["object", "boolean"],
    properties: {
      $id: { type: "string" },
      $schema: { type: "string" },
      $ref: { type: "string" },
      $comment: { type: "string" },
      ...annotationKeywords(),
      ...validation,
      type: typeKeyword,
      additionalItems: root,
      items: { anyOf: [root, list] },
      contains: root,
      definitions: map,
      properties: map,
      patternProperties: map,
      additionalProperties: root,
      dependencies: { type: "object", additionalProperties: { anyOf: [root, names] } },
      propertyNames: root,
      format: { type: "string" },
      contentMediaType: { type: "string" },
      contentEncoding: { type: "string" },
      if: root,
      then: root,
      else: root,
      allOf: list,
      anyOf: list,
      oneOf: list,
      not: root,
    },
    default: true,
  };
}

/** The metaschemas a schema may refer to by their public URIs, made when asked for. */
export const METASCHEMAS: ReadonlyMap<string, () => JsonSchema> = new Map([
  [`${DRAFT_2020}/schema`, draft2020],
  ["http://json-schema.org/draft-07/schema", draft07],
  ...Object.entries(VOCABULARIES).map(([name, make]) => [`${DRAFT_2020}/meta/${name}`, make] as const),
]);
