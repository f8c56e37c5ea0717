import { Value } from "typebox/value";
import { expect } from "vitest";
import {
  httpEnvelope,
  isResponseEnvelope,
  localEnvelope,
  mcpEnvelope,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
  unwrap,
} from "../../src/index.ts";
import { collect, query, stream } from "../make-operation.ts";
import { registryOf, type SeedDocument } from "./sentence.ts";

const HTTP = {
  statusCode: 200,
  headers: { "content-type": "application/json" },
  contentType: "application/json",
};
const DONE = [{ type: "text", text: "Done" }] as const;

/** What each source requires, right and wrong. */
const REQUIRED = {
  local: { operationId: ["task.create", 7], timestamp: [1, "now"] },
  http: { statusCode: [200, "200"], headers: [{}, []], contentType: ["", null] },
  mcp: { isError: [false, "no"], content: [[], {}] },
} as const;

const metaOf = (source: keyof typeof REQUIRED): Record<string, unknown> => ({
  source,
  ...Object.fromEntries(Object.entries(REQUIRED[source]).map(([field, [right]]) => [field, right])),
});

/** The later page about envelopes, which wins where the two differ. */
export const envelopeGuide: SeedDocument = {
  Structure: [
    [
      "RE-1 RE-10",
      "every result is an envelope, wherever the operation ran",
      async () => {
        const registry = registryOf([
          query("a.local", () => 1),
          query("a.http", () => httpEnvelope(1, HTTP)),
          query("a.mcp", () => mcpEnvelope(1, { isError: false, content: DONE })),
        ]);
        for (const id of ["a.local", "a.http", "a.mcp"])
          expect(isResponseEnvelope(await registry.execute(id, {}))).toBe(true);
      },
    ],
    ...(Object.keys(REQUIRED) as (keyof typeof REQUIRED)[]).map(
      (source) =>
        [
          "RE-1 RE-7",
          `meta of the source ${source} carries ${Object.keys(REQUIRED[source]).join(", ")}`,
          () => {
            const meta = metaOf(source);
            expect(isResponseEnvelope({ data: 1, meta })).toBe(true);
            for (const [field, [, wrong]] of Object.entries(REQUIRED[source])) {
              const { [field]: _, ...missing } = meta;
              expect(isResponseEnvelope({ data: 1, meta: missing })).toBe(false);
              expect(isResponseEnvelope({ data: 1, meta: { ...meta, [field]: wrong } })).toBe(false);
            }
          },
        ] as const,
    ),
    [
      "RE-4",
      "structuredContent and _meta of the source mcp may be there",
      () => {
        const meta = { ...metaOf("mcp"), structuredContent: { a: 1 }, _meta: { a: 1 } };
        expect(isResponseEnvelope({ data: 1, meta })).toBe(true);
      },
    ],
  ],
  "Creating envelopes": [
    [
      "RE-6",
      "localEnvelope takes the data and the operation",
      () =>
        expect(localEnvelope({ id: "123", title: "My task" }, "task.create")).toMatchObject({
          data: { id: "123", title: "My task" },
          meta: { source: "local", operationId: "task.create" },
        }),
    ],
    [
      "RE-6",
      "httpEnvelope takes the data, and status, headers and content type",
      () => expect(httpEnvelope("x", HTTP)).toEqual({ data: "x", meta: { source: "http", ...HTTP } }),
    ],
    [
      "RE-6",
      "mcpEnvelope takes the data, and the flag and the blocks",
      () => {
        const meta = { isError: false, content: DONE };
        expect(mcpEnvelope("x", meta)).toEqual({ data: "x", meta: { source: "mcp", ...meta } });
      },
    ],
  ],
  Unwrapping: [
    [
      "RE-8",
      "unwrap gives the data and leaves the rest",
      () => expect(unwrap(httpEnvelope("x", HTTP))).toBe("x"),
    ],
  ],
  "Detecting envelopes": [
    [
      "RE-7",
      "data, meta, a known source and the fields of that source are checked; nothing it is given makes it throw",
      () => {
        const hostile = new Proxy(
          {},
          {
            get: () => {
              throw new Error("no");
            },
          },
        );
        expect(isResponseEnvelope(hostile)).toBe(false);
        expect(isResponseEnvelope({ data: 1, meta: { source: "local" } })).toBe(false);
        expect(isResponseEnvelope({ meta: metaOf("local") })).toBe(false);
      },
    ],
  ],
  "Automatic wrapping": [
    [
      "RE-10 RE-14",
      "execute and subscribe wrap a plain value in a local envelope",
      async () => {
        const values = async function* () {
          yield 1;
        };
        const registry = registryOf([query("a.b", () => 1), stream("a.s", values)]);
        const found = [await registry.execute("a.b", {}), ...(await collect(registry.subscribe("a.s")))];
        expect(found.map(({ data, meta }) => [data, meta.source])).toEqual([
          [1, "local"],
          [1, "local"],
        ]);
      },
    ],
    [
      "RE-11 RE-14",
      "an envelope passes through unchanged",
      async () => {
        const envelope = Object.freeze(httpEnvelope(1, HTTP));
        const values = async function* () {
          yield envelope;
        };
        const registry = registryOf([query("a.b", () => envelope), stream("a.s", values)]);
        expect(await registry.execute("a.b", {})).toBe(envelope);
        const [first] = await collect(registry.subscribe("a.s"));
        // The number of the yield is a fact besides.
        expect(first).toMatchObject({ data: envelope.data, meta: envelope.meta });
      },
    ],
  ],
  "MCP content blocks": [
    [
      "RE-5",
      "a result of MCP has blocks of five kinds, and an envelope with any other block is none",
      () => {
        const blocks = [
          { type: "text", text: "x" },
          { type: "image", data: "AAAA", mimeType: "image/png" },
          { type: "audio", data: "AAAA", mimeType: "audio/wav" },
          { type: "resource", resource: { uri: "a:b" } },
          { type: "resource_link", uri: "a:b", name: "B" },
        ];
        expect(isResponseEnvelope({ data: 1, meta: { ...metaOf("mcp"), content: blocks } })).toBe(true);
        const odd = [{ type: "hologram" }];
        expect(isResponseEnvelope({ data: 1, meta: { ...metaOf("mcp"), content: odd } })).toBe(false);
      },
    ],
  ],
  "TypeBox schemas": [
    [
      "RE-9",
      "Value.Check takes the schemas of envelope and meta",
      () => {
        for (const source of ["local", "http", "mcp"] as const) {
          const meta = metaOf(source);
          expect(Value.Check(ResponseMetaSchema, meta)).toBe(true);
          expect(Value.Check(ResponseEnvelopeSchema, { data: 1, meta })).toBe(true);
          expect(Value.Check(ResponseEnvelopeSchema, { data: 1, meta: { source } })).toBe(false);
        }
      },
    ],
  ],
};
