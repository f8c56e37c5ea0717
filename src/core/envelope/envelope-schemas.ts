import { Type } from "typebox";

/** Not `Type.Record`, whose pattern lets names with a line break through unchecked. */
const Headers = Type.Unsafe<Record<string, string>>({
  type: "object",
  additionalProperties: { type: "string" },
});

const OpenObject = Type.Unsafe<Record<string, unknown>>({ type: "object" });

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
      Type.Literal("return-value"),
    ]),
  ),
  normalization: Type.Optional(Normalization),
  violations: Type.Optional(
    Type.Array(Type.Object({ pointer: Type.String(), expected: Type.String(), found: Type.String() })),
  ),
  sequence: Type.Optional(Type.Number()),
  cursor: Type.Optional(Type.String()),
  event: Type.Optional(Type.String()),
  page: Type.Optional(
    Type.Object({ next: Type.Optional(Type.String()), input: Type.Optional(Type.Unknown()) }),
  ),
  code: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  details: Type.Optional(Type.Unknown()),
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
  structuredContent: Type.Optional(Type.Unknown()),
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
export const ResponseEnvelopeSchema = Type.Object({
  data: Type.Unknown({ description: "What the operation answered" }),
  meta: ResponseMetaSchema,
});
