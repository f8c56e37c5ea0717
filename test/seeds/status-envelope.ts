import { Linter } from "eslint";
import { expect } from "vitest";
import { z } from "zod";
import {
  buildStructuredResponse,
  buildToolResponse,
  composeToolPayload,
  createMemoryStore,
  createResultFormat,
  createToolCaller,
  createToolResponseEnvelopeSchema,
  type DefaultToolResponseData,
  previewToolPayload,
  type ToolResponseEnvelope,
  type ToolResponseMeta,
  ToolResponseMetaSchema,
  toolOutputSchema,
} from "../../src/formats/index.ts";
import { CallError, compileSchema, outcomeOf, result, toolError } from "../../src/index.ts";
import { plugin } from "../../src/lint/index.ts";
import { query } from "../make-operation.ts";
import { registryOf, type SeedDocument, textAt } from "./sentence.ts";

const metaSchema = compileSchema(ToolResponseMetaSchema);
const LINK = { type: "resource_link", uri: "docs://match/1", name: "Full excerpt" } as const;
const META: ToolResponseMeta = {
  status: "ok",
  summary: "2 matches",
  details: ["first", "second"],
  nextSteps: ["Read the excerpt."],
  truncated: true,
  tokenUsage: { inline: 10, total: 90 },
  rateLimit: { remaining: 3, resetSeconds: 60 },
};
const DATA = { hits: 2 };
const texts = ({ content }: { readonly content: readonly object[] }) =>
  content.map((block) => ("text" in block ? block.text : block));
const compose = (options: Partial<Parameters<typeof composeToolPayload>[0]> = {}) =>
  composeToolPayload({ meta: META, data: DATA, onWarning: () => {}, ...options });
const warningsOf = (summary: string): string[] => {
  const heard: string[] = [];
  const meta = { status: "ok", summary } as const;
  composeToolPayload({ meta, data: null, onWarning: (message) => heard.push(message) });
  return heard;
};

const Hits = z.object({ hits: z.number().int(), truncated: z.boolean().optional() });
const registry = registryOf([
  query("a.typed", () => DATA, { outputSchema: Hits }),
  query("a.helper", () => compose(), { outputSchema: createToolResponseEnvelopeSchema(Hits) }),
  query("a.mistaken", () => compose({ data: { hits: "many" } }), {
    outputSchema: createToolResponseEnvelopeSchema(Hits),
  }),
  query("a.says-no", () => toolError({ errorCode: "NO_INDEX" }, { message: "There is no index." })),
  query("a.throws", () => {
    throw new CallError("RATE_LIMITED");
  }),
  query("a.said", () => result(DATA, { status: "warn", summary: "Slow", nextSteps: ["Wait."] })),
]);
const call = createToolCaller(registry, { format: "status-envelope" });
const metaOf = async (id: string) => ((await call(id, {})).structuredContent as ToolResponseEnvelope).meta;

/** The options of a rule are compiled to code, which a hardened run forbids; they are not what this is about. */
const { "no-raw-mcp-text": rule } = plugin.rules;
const waybill = {
  rules: { "no-raw-mcp-text": { ...rule, meta: { ...rule?.meta, schema: false } } },
} as never;
const lint = (code: string): readonly string[] =>
  new Linter()
    .verify(code, [{ plugins: { waybill }, rules: { "waybill/no-raw-mcp-text": "warn" } }])
    .map(({ message }) => message);

const preview = () => {
  const store = createMemoryStore();
  const data = { hits: 900, lines: Array.from({ length: 900 }, (_, i) => `line ${i}`), truncated: false };
  const meta = { status: "ok", summary: "900 lines" } as const;
  return {
    store,
    data,
    made: previewToolPayload({ meta, data, store, additionalText: [data.lines.join("\n")] }),
  };
};

/** The contract of structured tool responses. */
export const statusEnvelope: SeedDocument = {
  "Envelope types": [
    [
      "TR-1",
      "status is one of four words",
      () => {
        for (const status of ["ok", "error", "info", "warn"])
          expect(metaSchema.check({ status, summary: "x" })).toBe(true);
        expect(metaSchema.check({ status: "success", summary: "x" })).toBe(false);
        expect(() => compose({ meta: { status: "success" as never, summary: "x" } })).toThrow(/meta\.status/);
      },
    ],
    [
      "TR-2",
      "the summary is the headline, with the emoji of the status before it",
      () => {
        const emoji = { ok: "✅ ", error: "❌ ", info: "ℹ️ ", warn: "⚠️ " } as const;
        for (const [status, sign] of Object.entries(emoji)) {
          const meta = { status: status as ToolResponseMeta["status"], summary: "Two" };
          expect(textAt(compose({ meta }).content, 0)).toBe(`${sign}Two`);
        }
      },
    ],
    [
      "TR-1",
      "status and summary are there; everything else may be",
      () => {
        expect(metaSchema.check({ status: "ok", summary: "x" })).toBe(true);
        expect(metaSchema.check({ status: "ok" })).toBe(false);
        expect(metaSchema.check({ summary: "x" })).toBe(false);
        expect(metaSchema.check(META)).toBe(true);
      },
    ],
    [
      "TR-2",
      "details are texts that follow the headline in their order",
      () => expect(texts(compose()).slice(0, 3)).toEqual(["✅ 2 matches", "first", "second"]),
    ],
    [
      "TR-7",
      "nextSteps are hints for the agent, in meta and for hosts that show text alone",
      () => {
        const made = compose();
        expect(made.structuredContent.meta.nextSteps).toEqual(["Read the excerpt."]);
        expect(texts(made)).toContain("Next steps:\n- Read the excerpt.");
      },
    ],
    [
      "TR-6",
      "truncated is a flag for text that was shortened",
      async () => {
        expect(compose().structuredContent.meta.truncated).toBe(true);
        const jsonData = "x".repeat(5_000);
        const made = buildToolResponse({ status: "ok", title: "Long", jsonData });
        expect(made.structuredContent.meta.truncated).toBe(true);
      },
    ],
    [
      "TR-1",
      "tokenUsage and rateLimit reach the host as structure",
      () => {
        const { tokenUsage, rateLimit } = compose().structuredContent.meta;
        expect({ tokenUsage, rateLimit }).toEqual({
          tokenUsage: { inline: 10, total: 90 },
          rateLimit: { remaining: 3, resetSeconds: 60 },
        });
      },
    ],
    [
      "TR-1",
      "the envelope is the data of the tool with that meta",
      async () => {
        expect(compose().structuredContent).toEqual({ meta: META, data: DATA });
        const { structuredContent } = await call("a.typed", {});
        expect(Object.keys(structuredContent ?? {})).toEqual(["meta", "data"]);
      },
    ],
    [
      "TR-4",
      "a schema of the data declares the whole envelope as the output of a tool",
      async () => {
        const schema = createToolResponseEnvelopeSchema(Hits);
        const compiled = compileSchema(schema);
        expect(compiled.check(compose().structuredContent)).toBe(true);
        expect(compiled.check(compose({ data: { hits: "two" } }).structuredContent)).toBe(false);
        expect(await schema["~standard"].validate(compose().structuredContent)).not.toHaveProperty("issues");
        const advertised = toolOutputSchema(registry.get("a.typed") as never, "status-envelope");
        expect(advertised).toEqual(schema);
      },
    ],
  ],
  composeToolPayload: [
    [
      "TR-2",
      "it takes meta, data, further texts and links",
      () => {
        const made = compose({ additionalText: ["preview"], resourceLinks: [LINK] });
        const next = "Next steps:\n- Read the excerpt.";
        expect(texts(made)).toEqual(["✅ 2 matches", "first", "second", "preview", next, LINK]);
      },
    ],
    [
      "TR-2",
      "first comes the headline, as a block of content",
      () => expect(compose().content[0]).toEqual({ type: "text", text: "✅ 2 matches" }),
    ],
    [
      "TR-2",
      "then the details, unless omitMetaDetails keeps them out; they stay in meta",
      () => {
        const made = compose({ omitMetaDetails: true });
        expect(texts(made)).toEqual(["✅ 2 matches", "Next steps:\n- Read the excerpt."]);
        expect(made.structuredContent.meta.details).toEqual(["first", "second"]);
      },
    ],
    [
      "TR-2",
      "then the further texts, a block each",
      () => expect(texts(compose({ additionalText: ["one", "two"] })).slice(3, 5)).toEqual(["one", "two"]),
    ],
    [
      "TR-2",
      "then the links, untouched",
      () => expect(compose({ resourceLinks: [LINK] }).content.at(-1)).toBe(LINK),
    ],
    [
      "TR-2 TR-7",
      "no other block is written, where the next steps are left out",
      () => {
        expect(texts(compose({ resourceLinks: [LINK], omitNextSteps: true }))).toEqual([
          ...["✅ 2 matches", "first", "second"],
          LINK,
        ]);
        expect(texts(compose())).toContain("Next steps:\n- Read the excerpt.");
        expect(texts(compose({ additionalText: ["", "  "] }))).toEqual(texts(compose()));
      },
      "blank ones left out; then next steps",
    ],
    [
      "TR-2",
      "it returns content, the envelope as structured content, and isError",
      () => {
        const made = compose();
        expect(Object.keys(made)).toEqual(["content", "structuredContent", "isError"]);
        expect(Object.keys(made.structuredContent)).toEqual(["meta", "data"]);
      },
    ],
    [
      "TR-3",
      "isError is true for the status error, unless it is given",
      () => {
        for (const status of ["ok", "error", "info", "warn"] as const)
          expect(compose({ meta: { status, summary: "x" } }).isError).toBe(status === "error");
        expect(compose({ isError: true }).isError).toBe(true);
        expect(compose({ meta: { status: "error", summary: "x" }, isError: false }).isError).toBe(false);
      },
    ],
  ],
  "Migration checklist": [
    [
      "TR-4",
      "the result of a tool has a Zod schema, and a typed payload fits it",
      async () => {
        const data: z.infer<typeof Hits> = { hits: 2 };
        const envelope = await registry.execute("a.typed", {});
        expect(envelope.data).toEqual(data);
        expect(envelope.meta.waybill ?? {}).not.toHaveProperty("violations");
      },
    ],
    [
      "TR-1",
      "meta has a summary, and what to do next",
      async () =>
        expect(await metaOf("a.said")).toEqual({ status: "warn", summary: "Slow", nextSteps: ["Wait."] }),
    ],
    [
      "TR-1",
      "the summary has 80 characters at most, or somebody is warned",
      () => {
        expect(warningsOf("x".repeat(80))).toEqual([]);
        expect(warningsOf("x".repeat(81))).toEqual([expect.stringContaining("80 characters")]);
        expect(warningsOf("one\ntwo")).toEqual([expect.stringContaining("line break")]);
      },
    ],
    [
      "TR-2 X-8",
      "a tool returns what composeToolPayload gives it",
      async () => {
        const envelope = await registry.execute("a.helper", {});
        expect(outcomeOf(envelope)).toBe("ok");
        expect(envelope.data).toEqual(DATA);
        expect((await call("a.helper", {})).structuredContent).toEqual({ meta: META, data: DATA });
      },
    ],
    [
      "TR-4 RE-12 X-8",
      "the schema of the envelope is the outputSchema, and the data is held against its part of it",
      async () => {
        const right = await registry.execute("a.helper", {});
        expect(right.meta.waybill).not.toHaveProperty("violations");
        const wrong = await registry.execute("a.mistaken", {});
        expect(wrong.meta.waybill?.violations).toMatchObject([{ pointer: "/hits" }]);
      },
    ],
    [
      "TR-5",
      "buildStructuredResponse takes the arguments of buildToolResponse, and data",
      () => {
        const options = { status: "success", title: "Search", textSections: ["one"] };
        const [old, now] = [buildToolResponse(options), buildStructuredResponse({ ...options, data: DATA })];
        expect(now.content).toEqual(old.content);
        expect(now.structuredContent.data).toBe(DATA);
      },
    ],
  ],
  "Convenience helpers": [
    [
      "TR-5",
      "buildStructuredResponse writes the text and the structured content from status, title and data",
      () =>
        expect(
          buildStructuredResponse({ status: "ok", title: "Search", statusMessage: "2 matches", data: DATA }),
        ).toEqual({
          content: [{ type: "text", text: "✅ Search: 2 matches" }],
          structuredContent: { meta: { status: "ok", summary: "Search: 2 matches" }, data: DATA },
          isError: false,
        }),
    ],
    [
      "TR-5",
      "the legacy words for the status are understood",
      () => {
        const words = { success: "ok", ok: "ok", error: "error", info: "info", warn: "warn", odd: "info" };
        for (const [status, meant] of Object.entries(words)) {
          const made = buildStructuredResponse({ status, title: "x", data: null });
          expect(made.structuredContent.meta.status).toBe(meant);
        }
      },
    ],
    [
      "TR-5",
      "buildToolResponse gives the default payload, for tools that have no type of their own yet",
      () => {
        const made = buildToolResponse({
          status: "ok",
          title: "Search",
          statusMessage: "done",
          textSections: ["one"],
          jsonData: [1],
        });
        const data: DefaultToolResponseData = made.structuredContent.data;
        expect(data).toEqual({ title: "Search", statusMessage: "done", sections: ["one"], jsonData: [1] });
      },
    ],
  ],
  "Error patterns": [
    [
      "TR-7",
      "an error has the status error and next steps that can be taken, those of a served operation too",
      async () => {
        for (const id of ["a.throws", "a.none"]) {
          const { structuredContent, isError } = await call(id, {});
          expect([isError, (structuredContent as ToolResponseEnvelope).meta.status]).toEqual([true, "error"]);
        }
        expect((await metaOf("a.throws")).nextSteps).toEqual([expect.stringContaining("Try again")]);
      },
    ],
    [
      "TR-7",
      "an errorCode in the data is there for callers to branch on",
      async () => {
        const envelope = await registry.execute("a.says-no", {});
        expect(envelope.data).toEqual({ errorCode: "NO_INDEX" });
        const meta = { status: "error", summary: "No" } as const;
        const failing = registryOf([query("a.b", () => compose({ meta, data: { errorCode: "NO_INDEX" } }))]);
        expect((await failing.execute("a.b", {})).meta.waybill?.code).toBe("NO_INDEX");
        expect((await call("a.throws", {})).structuredContent).toMatchObject({
          data: { errorCode: "RATE_LIMITED" },
        });
      },
    ],
  ],
  "Token discipline": [
    [
      "TR-6",
      "a preview in the text stays under some 2,000 characters",
      async () => {
        for (const block of (await preview().made).content)
          if ("text" in block) expect(String(block.text).length).toBeLessThanOrEqual(2_100);
        const made = buildToolResponse({ status: "ok", title: "x", jsonData: "y".repeat(9_000) });
        expect(textAt(made.content, 1).length).toBeLessThanOrEqual(2_100);
      },
    ],
    [
      "TR-6",
      "what is left out is flagged, and a link leads to it that can be read",
      async () => {
        const { store, data, made } = preview();
        const { structuredContent, content } = await made;
        expect(structuredContent.meta.truncated).toBe(true);
        const link = content.find(({ type }) => type === "resource_link") as { readonly uri: string };
        const whole = await store.read(link.uri);
        expect(JSON.stringify(whole)).toContain(data.lines.at(-1));
        expect(structuredContent.meta.tokenUsage?.total).toBeGreaterThan(
          structuredContent.meta.tokenUsage?.inline ?? Number.POSITIVE_INFINITY,
        );
      },
    ],
    [
      "TR-6 X-10",
      "a truncated of the data says that it was cut; where the data has none, none is added",
      async () => {
        const { structuredContent } = await preview().made;
        expect(structuredContent.data.truncated).toBe(true);
        const data = { lines: Array.from({ length: 900 }, (_, i) => `line ${i}`) };
        const meta = { status: "ok", summary: "x" } as const;
        const made = await previewToolPayload({ meta, data, store: createMemoryStore() });
        expect(made.structuredContent.data.lines.length).toBeLessThan(900);
        expect(made.structuredContent.data).not.toHaveProperty("truncated");
      },
    ],
    [
      "TR-6",
      "an operation that is served has the same, without its author's doing",
      async () => {
        const store = createMemoryStore();
        const format = createResultFormat({ format: "status-envelope", preview: { store } });
        expect(format.previews).toBe(true);
        const lines = Array.from({ length: 900 }, (_, i) => `line ${i}`);
        const long = registryOf([query("a.long", () => ({ lines }))]);
        const served = await createToolCaller(long, { format: "status-envelope", preview: { store } })(
          "a.long",
          {},
        );
        expect(served.structuredContent).toMatchObject({ meta: { truncated: true } });
        expect(served.content.some(({ type }) => type === "resource_link")).toBe(true);
      },
    ],
  ],
  Deprecation: [
    [
      "TR-5",
      "buildToolResponse makes nothing but text",
      () => {
        const { structuredContent } = buildToolResponse({ status: "ok", title: "Search" });
        expect(structuredContent).toEqual({
          meta: { status: "ok", summary: "Search" },
          data: { title: "Search" },
        });
      },
      "the exported `DefaultToolResponseData`",
    ],
    [
      "TR-8",
      "the lint rule warns of a module that imports buildToolResponse, and names what to use",
      () => {
        const found = lint('import { buildToolResponse } from "waybill/formats";\nbuildToolResponse({});');
        expect(found.length).toBeGreaterThan(0);
        expect(found[0]).toMatch(/buildStructuredResponse or composeToolPayload/);
        expect(
          lint('import { composeToolPayload } from "waybill/formats";\ncomposeToolPayload({});'),
        ).toEqual([]);
      },
    ],
  ],
};
