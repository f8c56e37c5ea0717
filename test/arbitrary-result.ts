import fc from "fast-check";
import {
  type CallToolResult,
  composeToolPayload,
  type FormatName,
  toToolResult,
} from "../src/formats/index.ts";
import {
  httpEnvelope,
  localEnvelope,
  mcpEnvelope,
  type ResponseEnvelope,
  result,
  toolError,
} from "../src/index.ts";

/** JSON without `-0`, which JSON text cannot tell from `0`. */
const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);

const word = fc.string({ minLength: 0, maxLength: 12, unit: "grapheme" });
const record = fc.dictionary(
  fc.oneof(word, fc.constantFrom("__proto__", "constructor", "isError", "tier", "data")),
  json,
  {
    maxKeys: 3,
  },
);

/** Adds some of these fields to an object, often none of them. */
function some<T extends Record<string, fc.Arbitrary<unknown>>>(
  fields: T,
): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(fields, { requiredKeys: [] });
}

const text = fc.record({ type: fc.constant("text"), text: word });
const block = fc.oneof(
  { weight: 4, arbitrary: text },
  fc.record({ type: fc.constant("text"), text: word, annotations: fc.constant({ priority: 1 }) }),
  fc.record({ type: fc.constant("image"), data: fc.constant("AAAA"), mimeType: fc.constant("image/png") }),
  fc.record({ type: fc.constant("resource_link"), uri: fc.webUrl(), name: word }),
  fc.record({ type: fc.constant("hologram"), depth: fc.nat() }),
  fc.record({
    type: fc.constant("text"),
    text: fc.constantFrom("__ENVELOPE_V1__:", "__ENVELOPE_V1__:e30=", "see __ENVELOPE_V1__:"),
  }),
);
const blocks = fc.array(block, { maxLength: 4 });

const meta = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  record,
  fc.record({ "dev.waybill/result": fc.oneof(record, fc.constantFrom(null, 7, "text", {})) }),
);

/** Puts unusual things around a well-made tool result. */
function around(result: fc.Arbitrary<object>): fc.Arbitrary<CallToolResult> {
  return fc
    .tuple(result, meta, some({ resultType: fc.constant("complete"), ttlMs: fc.nat() }))
    .map(
      ([made, given, unknown]) => ({ ...made, ...(given && { _meta: given }), ...unknown }) as CallToolResult,
    );
}

const flag = fc.constantFrom(undefined, true, false);
const withFlag = (made: object, isError: boolean | undefined) =>
  isError === undefined ? made : { ...made, isError };

const errorPayload = fc
  .tuple(
    fc.record({
      category: fc.constantFrom("validation", "timeout", "quantum"),
      code: word,
      message: word,
      recoverable: fc.boolean(),
    }),
    some({ details: fc.oneof(word, json), suggestedAction: word, nextTool: word, severity: json }),
  )
  .map(([known, more]) => ({ ...known, ...more }));

const toolEnvelope = around(
  fc
    .tuple(
      word,
      fc.oneof(json, errorPayload),
      fc.record({ tool: word, ts: word }),
      record,
      flag,
      blocks,
      fc.boolean(),
    )
    .map(([summaryMarkdown, payload, known, unknown, isError, more, isDoubled]) => {
      const { tier: _, ...rest } = unknown;
      const made = toToolResult({ summaryMarkdown, payload, meta: { ...rest, ...known } });
      const tail = more.filter((item) => !("text" in item && String(item.text).startsWith("__ENV")));
      const content = [...made.content, ...tail, ...(isDoubled ? made.content.slice(1) : [])];
      return withFlag({ content }, isError);
    }),
);

const tieredError = fc
  .tuple(
    fc.record({ error: word, error_code: fc.constantFrom("not_found", "timeout", "weird", "TIMEOUT") }),
    some({ error_details: fc.oneof(fc.constant(null), record), trace: json }),
  )
  .map(([known, more]) => ({ ...known, ...more }));

const tieredValue = fc
  .tuple(
    fc.record({
      tier: fc.constantFrom("community", "pro", "enterprise"),
      tool_version: fc.constantFrom("1.0.0", "2.1.0-beta.1"),
      tool_id: word,
      request_id: word,
      capabilities: fc.array(word, { maxLength: 2 }).map((more) => [...more, "envelope-v1"]),
      duration_ms: fc.oneof(fc.nat(), fc.double({ min: 0, max: 1e6, noNaN: true })),
      error: fc.oneof(fc.constant(null), tieredError),
      upgrade_hints: fc.array(fc.record({ feature: word, tier: word, reason: word }), { maxLength: 2 }),
      data: json,
    }),
    some({ trace_id: word }),
    fc.boolean(),
  )
  .map(([known, unknown, omits]) => {
    const { duration_ms, ...others } = known;
    const mayOmit = omits && known.tier === "community";
    return { ...(mayOmit ? others : known), ...unknown, ...(!mayOmit && { duration_ms: duration_ms + 0 }) };
  });

/** Where a contract stands: in structured content, with its JSON compact, pretty or missing, or in text alone. */
function carried(value: fc.Arbitrary<object>): fc.Arbitrary<CallToolResult> {
  return around(
    fc.tuple(value, flag, blocks, fc.constantFrom(0, 1, 2, 3)).map(([contract, isError, more, how]) => {
      // A tiered envelope without an error is a success.
      const isSuccess = "error" in contract && contract.error === null;
      const given = isError === true && isSuccess ? undefined : isError;
      const first = {
        type: "text",
        text: how === 1 ? JSON.stringify(contract, null, 2) : JSON.stringify(contract),
      };
      if (how === 3) return withFlag({ content: [first, ...more] }, given);
      const content = how === 2 ? more : [first, ...more];
      return withFlag({ content, structuredContent: contract }, given);
    }),
  );
}

const statusMeta = fc
  .tuple(
    fc.record({ status: fc.constantFrom("ok", "error", "info", "warn"), summary: word }),
    some({
      details: fc.array(word, { maxLength: 2 }),
      nextSteps: fc.array(word, { maxLength: 2 }),
      truncated: fc.boolean(),
      tokenUsage: some({ inline: fc.nat(), total: fc.nat() }),
      rateLimit: some({ remaining: fc.nat(), resetSeconds: fc.nat() }),
      locale: word,
    }),
  )
  .map(([known, more]) => ({ ...known, ...more }));

const composed = around(
  fc
    .tuple(statusMeta, json, fc.array(word, { maxLength: 2 }), fc.boolean(), flag)
    .map(([known, data, additionalText, omitMetaDetails, isError]) =>
      composeToolPayload({
        meta: known as never,
        data,
        additionalText,
        resourceLinks: [{ type: "resource_link", uri: "docs://1", name: "One" }],
        omitMetaDetails,
        ...(isError !== undefined && { isError }),
        onWarning: () => undefined,
      }),
    ),
);

const statusValue = fc
  .tuple(statusMeta, json, some({ trace: json }))
  .map(([known, data, unknown]) => ({ meta: known, data, ...unknown }));

const plain = around(
  fc
    .tuple(blocks, fc.option(json, { nil: undefined }), flag, fc.constantFrom(0, 1, 2))
    .map(([content, data, isError, how]) => {
      if (data === undefined) return withFlag({ content }, isError);
      if (how === 0) return withFlag({ structuredContent: data }, isError);
      const same = [{ type: "text", text: JSON.stringify(data) }];
      return withFlag({ content: how === 1 ? same : content, structuredContent: data }, isError);
    }),
);

const count = fc.nat();
const said = some({
  status: fc.constantFrom("ok", "info", "warn"),
  summary: word,
  details: fc.array(word, { maxLength: 2 }),
  nextSteps: fc.array(word, { maxLength: 2 }),
  truncated: fc.boolean(),
  tokenUsage: some({ inline: count, total: count }),
  rateLimit: some({ remaining: count, resetSeconds: count }),
  capabilities: fc.array(word, { maxLength: 2 }),
  upgradeHints: fc.array(fc.record({ feature: word, tier: word, reason: word }), { maxLength: 2 }),
});
const advice = some({ category: word, recoverable: fc.boolean(), suggestedAction: word, nextTool: word });
const words = some({
  markdown: word,
  links: fc.array(fc.record({ uri: fc.webUrl(), name: word }), { maxLength: 2 }),
});

const facts = fc.option(
  some({
    durationMs: fc.nat(),
    code: word,
    message: word,
    details: json,
    cursor: word,
    event: word,
    attempts: fc.nat(),
    said: fc.tuple(said, advice).map(([first, second]) => ({ ...first, ...second })),
  }),
  { nil: undefined },
);
const knownBlocks = blocks.map((list) => list.filter(({ type }) => type !== "hologram"));

const responseEnvelope: fc.Arbitrary<ResponseEnvelope> = fc.oneof(
  fc
    .tuple(fc.oneof(json, fc.date({ noInvalidDate: true }), fc.bigInt()), word)
    .map(([data, id]) => localEnvelope(data, id)),
  fc
    .tuple(json, some({ code: word, message: word, details: record }), said, advice, words)
    .map(([data, told, { status: _, details: __, ...common }, more, shown]) =>
      toolError(data, { ...common, ...more, ...shown, ...told }),
    ),
  fc.tuple(json, said, words).map(([data, told, shown]) => result(data, { ...told, ...shown })),
  fc
    .tuple(json, fc.integer({ min: 100, max: 599 }), facts, fc.boolean())
    .map(([data, statusCode, waybill, isError]) =>
      httpEnvelope(data, {
        statusCode,
        headers: { a: "b" },
        contentType: "text/plain",
        isError,
        setCookie: ["x=1"],
        ...(waybill && { waybill }),
      }),
    ),
  fc
    .tuple(knownBlocks, fc.option(json, { nil: undefined }), meta, facts, fc.boolean(), fc.boolean())
    .map(([content, data, given, waybill, isError, isOther]) =>
      mcpEnvelope(data === undefined ? (isOther ? { own: true } : content) : isOther ? [data] : data, {
        isError,
        content: content as never,
        ...(data !== undefined && { structuredContent: data }),
        ...(given && { _meta: given }),
        ...(waybill && { waybill }),
      }),
    ),
);

/** Well-made and unusual results of each format. */
export const CARRIERS: Readonly<Record<FormatName, fc.Arbitrary<CallToolResult | ResponseEnvelope>>> = {
  "tool-envelope": toolEnvelope,
  "tiered-envelope": carried(tieredValue),
  "status-envelope": fc.oneof(composed, carried(statusValue)),
  mcp: plain,
  "response-envelope": responseEnvelope,
};
