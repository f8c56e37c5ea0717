import { type TSchema, Type } from "../typed-schema/type.ts";

/** By this symbol TypeBox 0.34 knows what a schema is; 1.x has a field of its own. */
const KIND = Symbol.for("TypeBox.Kind");

/** Marks a schema and all in it for TypeBox 0.34 too. Not enumerable, so that it stays plain JSON Schema. */
function forEitherTypeBox<S extends TSchema>(schema: S): S {
  for (const part of Object.values(schema)) {
    if (typeof part === "object" && part !== null) forEitherTypeBox(part as TSchema);
  }
  const kind = (schema as { readonly "~kind"?: string })["~kind"];
  return kind === undefined ? schema : Object.defineProperty(schema, KIND, { value: kind });
}

/** Not `Type.Record`, whose pattern lets names with a line break through unchecked. */
function recordOf<T>(member: TSchema | true) {
  return Type.Unsafe<Record<string, T>>(Type.Object({}, { additionalProperties: member }));
}

const Headers = recordOf<string>(Type.String());
const OpenObject = recordOf<unknown>(true);

const Annotations = Type.Object({
  audience: Type.Optional(Type.Array(Type.Union([Type.Literal("user"), Type.Literal("assistant")]))),
  priority: Type.Optional(Type.Number()),
  lastModified: Type.Optional(Type.String()),
});

const extras = { annotations: Type.Optional(Annotations), _meta: Type.Optional(OpenObject) };

const ResourceContent = Type.Object({
  uri: Type.String(),
  mimeType: Type.Optional(Type.String()),
  text: Type.Optional(Type.String()),
  blob: Type.Optional(Type.String()),
  _meta: Type.Optional(OpenObject),
});

/** Describes one content block of an MCP result. */
export const MCPContentBlockSchema = Type.Union([
  Type.Object({ type: Type.Literal("text"), text: Type.String(), ...extras }),
  Type.Object({ type: Type.Literal("image"), data: Type.String(), mimeType: Type.String(), ...extras }),
  Type.Object({ type: Type.Literal("audio"), data: Type.String(), mimeType: Type.String(), ...extras }),
  Type.Object({ type: Type.Literal("resource"), resource: ResourceContent, ...extras }),
  Type.Object({
    type: Type.Literal("resource_link"),
    uri: Type.String(),
    name: Type.String(),
    title: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    mimeType: Type.Optional(Type.String()),
    size: Type.Optional(Type.Number()),
    ...extras,
  }),
]);

const Normalization = Type.Object({
  stripped: Type.Array(Type.String()),
  defaulted: Type.Array(Type.String()),
  converted: Type.Array(Type.String()),
  omitted: Type.Optional(Type.Number()),
});

const Texts = Type.Array(Type.String());

const Said = Type.Object({
  status: Type.Optional(
    Type.Union([Type.Literal("ok"), Type.Literal("error"), Type.Literal("info"), Type.Literal("warn")]),
  ),
  summary: Type.Optional(Type.String()),
  details: Type.Optional(Texts),
  nextSteps: Type.Optional(Texts),
  content: Type.Optional(Type.Array(MCPContentBlockSchema)),
  truncated: Type.Optional(Type.Boolean()),
  tokenUsage: Type.Optional(
    Type.Object({ inline: Type.Optional(Type.Number()), total: Type.Optional(Type.Number()) }),
  ),
  rateLimit: Type.Optional(
    Type.Object({ remaining: Type.Optional(Type.Number()), resetSeconds: Type.Optional(Type.Number()) }),
  ),
  capabilities: Type.Optional(Texts),
  upgradeHints: Type.Optional(
    Type.Array(Type.Object({ feature: Type.String(), tier: Type.String(), reason: Type.String() })),
  ),
  category: Type.Optional(Type.String()),
  recoverable: Type.Optional(Type.Boolean()),
  suggestedAction: Type.Optional(Type.String()),
  nextTool: Type.Optional(Type.String()),
  errorExtra: Type.Optional(OpenObject),
  _meta: Type.Optional(OpenObject),
  extra: Type.Optional(recordOf<Record<string, unknown>>(OpenObject)),
});

const Facts = Type.Object({
  durationMs: Type.Optional(Type.Number()),
  attempts: Type.Optional(Type.Number()),
  obtained: Type.Optional(
    Type.Union([
      Type.Literal("structured-content"),
      Type.Literal("envelope-block"),
      Type.Literal("contract-json"),
      Type.Literal("text-json"),
      Type.Literal("content"),
      Type.Literal("body"),
      Type.Literal("members"),
      Type.Literal("return-value"),
    ]),
  ),
  normalization: Type.Optional(Normalization),
  violations: Type.Optional(
    Type.Array(
      Type.Object({
        pointer: Type.String(),
        expected: Type.String(),
        found: Type.String(),
        message: Type.Optional(Type.String()),
      }),
    ),
  ),
  sequence: Type.Optional(Type.Number()),
  cursor: Type.Optional(Type.String()),
  event: Type.Optional(Type.String()),
  page: Type.Optional(
    Type.Object({ next: Type.Optional(Type.String()), input: Type.Optional(Type.Unknown()) }),
  ),
  unknown: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  code: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  details: Type.Optional(Type.Unknown()),
  said: Type.Optional(Said),
  masked: Type.Optional(Texts),
  findings: Type.Optional(
    Type.Array(
      Type.Object({
        kind: Type.String(),
        rule: Type.String(),
        pointer: Type.String(),
        count: Type.Number(),
        masked: Type.Optional(Type.Literal(true)),
      }),
    ),
  ),
});

/** Describes the meta of a result made by a local handler. */
export const LocalResponseMetaSchema = Type.Object({
  source: Type.Literal("local"),
  operationId: Type.String({ description: "The full namespace.name" }),
  timestamp: Type.Number({ description: "Unix epoch milliseconds, taken when the result was wrapped" }),
  isError: Type.Optional(Type.Literal(true)),
  waybill: Type.Optional(Facts),
});

/** Describes the meta of a result that came over HTTP. */
export const HTTPResponseMetaSchema = Type.Object({
  source: Type.Literal("http"),
  statusCode: Type.Integer(),
  headers: Headers,
  contentType: Type.String(),
  setCookie: Type.Optional(Type.Array(Type.String())),
  isError: Type.Optional(Type.Literal(true)),
  waybill: Type.Optional(Facts),
});

/** Describes the meta of a result that came from an MCP server. */
export const MCPResponseMetaSchema = Type.Object({
  source: Type.Literal("mcp"),
  isError: Type.Boolean(),
  content: Type.Array(MCPContentBlockSchema),
  // Any JSON value passes; the type is that of the interface.
  structuredContent: Type.Optional(Type.Unsafe<Record<string, unknown>>(Type.Unknown())),
  _meta: Type.Optional(OpenObject),
  waybill: Type.Optional(Facts),
});

/** Describes the meta of any result, told apart by `source`. */
export const ResponseMetaSchema = Type.Union([
  LocalResponseMetaSchema,
  HTTPResponseMetaSchema,
  MCPResponseMetaSchema,
]);

/** Describes an envelope as it travels; properties it does not name are tolerated. */
export const ResponseEnvelopeSchema = forEitherTypeBox(
  Type.Object({
    data: Type.Unknown({ description: "What the operation answered" }),
    meta: ResponseMetaSchema,
  }),
);
