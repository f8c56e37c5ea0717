import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import {
  type CallToolResult,
  createToolCaller,
  decodeToolResult,
  ENVELOPE_PREFIX,
  isMcpErrorPayload,
  MCP_ERROR_CATEGORIES,
  type McpErrorPayload,
  McpErrorPayloadSchema,
  parseEnvelopeBlock,
  renderToolError,
  toErrorPayload,
  toToolResult,
  WorkflowEnvelopePayloadSchema,
} from "../../src/formats/index.ts";
import examples from "../../src/formats/tool-envelope/published-examples.json" with { type: "json" };
import { CallError, compileSchema, Type, toolError } from "../../src/index.ts";
import { query } from "../make-operation.ts";
import { ROOT } from "../run-node.ts";
import { registryOf, type SeedDocument, textAt } from "./sentence.ts";

const [workflow, failed] = examples.examples as [
  (typeof examples.examples)[number],
  (typeof examples.examples)[number],
];
const failure = failed.payload as McpErrorPayload;
const META = { tool: "feature-implement", ts: "2025-06-17T18:30:00Z" };
const made = toToolResult({ summaryMarkdown: "## Done", payload: { n: 1 }, meta: META });
const failedResult = (over: Partial<McpErrorPayload> = {}) =>
  toToolResult({ payload: { ...failure, ...over }, meta: META });

const encoded = (value: unknown): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64");
const blockOf = (meta: object, prefix = ENVELOPE_PREFIX, payload: unknown = 1): string =>
  prefix + encoded({ payload, meta: { tool: "t", ts: "x", ...meta } });
const resultOf = (block: string): CallToolResult => ({
  content: [
    { type: "text", text: "for people" },
    { type: "text", text: block },
  ],
});

const served = createToolCaller(
  registryOf([
    query("a.data", () => ({ n: 1 })),
    query("a.nothing", () => undefined),
    query("a.says-no", () => toolError(undefined, { message: "No.", nextTool: "a_data" })),
    query("a.throws", () => {
      throw new CallError("TIMEOUT");
    }),
    query("a.typed", () => 1, { inputSchema: Type.Object({ id: Type.String() }) }),
  ]),
  { format: "tool-envelope" },
);

const workflowSchema = compileSchema(WorkflowEnvelopePayloadSchema);
const errorSchema = compileSchema(McpErrorPayloadSchema);
const without = (value: object, key: string) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));

/** The specification of the envelope in two blocks. */
export const toolEnvelope: SeedDocument = {
  Introduction: [
    [
      "TE-1 X-2",
      "consumers get the payload for programs and the summary for people from one result",
      () => expect(decodeToolResult(made)).toMatchObject({ data: { n: 1 }, text: "## Done" }),
    ],
  ],
  Layout: [
    [
      "TE-1",
      "every response has the layout: data, nothing, a refusal, a failure, bad input, no such tool",
      async () => {
        const ids = ["a.data", "a.nothing", "a.says-no", "a.throws", "a.typed", "a.none"];
        for (const id of ids) {
          const { content } = await served(id, 5);
          expect(content).toHaveLength(2);
          expect(textAt(content, 0)).not.toBe("");
          expect(parseEnvelopeBlock(textAt(content, 1)).meta).toMatchObject({ version: 1 });
        }
      },
    ],
    [
      "TE-1 TE-3",
      "the first block is the Markdown, as it was written",
      () => expect(made.content[0]).toEqual({ type: "text", text: "## Done" }),
    ],
    [
      "TE-1",
      "the second block is the prefix and, without anything between, base64",
      () => expect(textAt(made.content, 1)).toMatch(/^__ENVELOPE_V1__:[A-Za-z0-9+/]+={0,2}$/),
    ],
    [
      "TE-1",
      "the base64 is that of a JSON object with a payload and a meta of tool, time and version",
      () => {
        const text = Buffer.from(textAt(made.content, 1).slice(ENVELOPE_PREFIX.length), "base64").toString();
        expect(text).toBe(JSON.stringify({ payload: { n: 1 }, meta: { ...META, version: 1 } }));
      },
    ],
  ],
  "Fields of meta": [
    [
      "TE-1 X-9",
      "tool is the name of the tool that made the envelope",
      async () => {
        expect(parseEnvelopeBlock(textAt(made.content, 1)).meta.tool).toBe("feature-implement");
        expect(parseEnvelopeBlock(textAt((await served("a.data", {})).content, 1)).meta.tool).toBe("a.data");
      },
    ],
    [
      "TE-1",
      "ts is the ISO 8601 time at which the envelope was made; a time that is given stays as it is",
      () => {
        const { ts } = parseEnvelopeBlock(
          textAt(toToolResult({ summaryMarkdown: "", payload: 1, meta: { tool: "t" } }).content, 1),
        ).meta;
        expect(new Date(ts).toISOString()).toBe(ts);
        expect(parseEnvelopeBlock(textAt(made.content, 1)).meta.ts).toBe(META.ts);
      },
    ],
    [
      "TE-4",
      "version is the number 1, whatever a writer says",
      () => {
        const meta = { ...META, version: 2 as never };
        const { content } = toToolResult({ summaryMarkdown: "", payload: 1, meta });
        expect(parseEnvelopeBlock(textAt(content, 1)).meta.version).toBe(1);
      },
    ],
  ],
  "Workflow payload": [
    [
      "TE-7",
      "a workflow instruction answers with name, id, model, steps, recommendations and artifacts, all of them",
      () => {
        expect(workflowSchema.check(workflow.payload)).toBe(true);
        for (const key of Object.keys(workflow.payload))
          expect(workflowSchema.check(without(workflow.payload, key))).toBe(false);
        expect(Object.keys(workflow.payload)).toHaveLength(6);
      },
    ],
    [
      "TE-7",
      "a model has an id and a label, a step a kind, a label and a summary",
      () => {
        const wrong = [
          { model: { id: "m" } },
          { model: { label: "M" } },
          { steps: [{ kind: "k", label: "l" }] },
        ];
        for (const part of wrong) expect(workflowSchema.check({ ...workflow.payload, ...part })).toBe(false);
        const steps = [{ kind: "review", label: "Review", summary: "Look." }];
        expect(workflowSchema.check({ ...workflow.payload, steps })).toBe(true);
      },
    ],
    [
      "TE-7",
      "recommendations and artifacts are lists of items whose shape is not given: any objects, kept as they are",
      () => {
        const payload = {
          ...workflow.payload,
          recommendations: [{ title: "x", weight: 3 }],
          artifacts: [{ kind: "file", deep: { a: [null] } }],
        };
        expect(workflowSchema.check(payload)).toBe(true);
        const result = toToolResult({ summaryMarkdown: "", payload, meta: META });
        expect(decodeToolResult(result).data).toEqual(payload);
        expect(workflowSchema.check({ ...payload, artifacts: ["file"] })).toBe(false);
      },
    ],
  ],
  "Error payload": [
    [
      "TE-7 TE-8",
      "a tool that meets an error answers with an error payload",
      async () => {
        for (const id of ["a.says-no", "a.throws", "a.none"]) {
          const { content, isError } = await served(id, {});
          const { payload } = parseEnvelopeBlock(textAt(content, 1));
          expect(errorSchema.check(payload)).toBe(true);
          expect(isError).toBe(true);
        }
      },
    ],
    [
      "TE-7",
      "category, code, message and recoverable are always there",
      () => {
        expect(isMcpErrorPayload(failure)).toBe(true);
        for (const key of ["category", "code", "message", "recoverable"]) {
          expect(isMcpErrorPayload(without(failure, key))).toBe(false);
          expect(errorSchema.check(without(failure, key))).toBe(false);
        }
      },
    ],
    [
      "TE-7",
      "details, suggestedAction and nextTool may be there, as texts",
      () => {
        const { category, code, message, recoverable } = failure;
        expect(errorSchema.check({ category, code, message, recoverable })).toBe(true);
        for (const key of ["details", "suggestedAction", "nextTool"]) {
          expect(errorSchema.check({ ...failure, [key]: "text" })).toBe(true);
          expect(errorSchema.check({ ...failure, [key]: 7 })).toBe(false);
        }
      },
    ],
    [
      "TE-7",
      "details may be a stack trace",
      () => {
        const error = new CallError("TIMEOUT", "Late.", { cause: new Error("inside") });
        expect(toErrorPayload(error)).not.toHaveProperty("details");
        expect(toErrorPayload(error, { debug: true }).details).toContain("Error: inside\n");
      },
      "stack traces never go into `details` unless debugging is asked for",
    ],
    [
      "TE-7 X-5",
      "recoverable says whether a retry is safe: with the same input, or with a better one as in the example",
      () => {
        expect(toErrorPayload(new CallError("TIMEOUT")).recoverable).toBe(true);
        expect(toErrorPayload(new CallError("VALIDATION_ERROR")).recoverable).toBe(true);
        expect(toErrorPayload(new CallError("ACCESS_DENIED")).recoverable).toBe(false);
        expect(failure.recoverable).toBe(true);
      },
    ],
    [
      "TE-7",
      "suggestedAction and nextTool tell how to go on, programs and readers of text alike",
      async () => {
        const advice = { suggestedAction: "Wait.", nextTool: "status" };
        const { error, text } = decodeToolResult(failedResult(advice));
        expect(error).toMatchObject(advice);
        expect(text).toContain("Suggestion: Wait.\nNext tool: status");
        expect(textAt((await served("a.says-no", {})).content, 0)).toContain("Next tool: a_data");
      },
    ],
    [
      "TE-7",
      "there are nine categories",
      () => {
        const nine = ["validation", "execution", "timeout", "model", "network", "authorization"];
        expect(MCP_ERROR_CATEGORIES).toEqual([...nine, "rate_limit", "not_found", "internal"]);
        for (const category of MCP_ERROR_CATEGORIES)
          expect(decodeToolResult(failedResult({ category })).error).toMatchObject({ category });
      },
    ],
  ],
  "Reading it in TypeScript": [
    [
      "TE-3",
      "a text without the prefix throws with the published message",
      () => {
        for (const text of ["", "## Done", " __ENVELOPE_V1__:e30=", encoded({ payload: 1 })])
          expect(() => parseEnvelopeBlock(text)).toThrow(/^not an envelope block$/);
      },
    ],
    [
      "TE-3",
      "a block gives its payload and its meta",
      () =>
        expect(parseEnvelopeBlock(textAt(made.content, 1))).toEqual({
          payload: { n: 1 },
          meta: { ...META, version: 1 },
        }),
    ],
    [
      "TE-3",
      "the blocks are at places 0 and 1 of the content",
      async () => {
        const { content } = await served("a.data", {});
        const [summary, block] = [textAt(content, 0), textAt(content, 1)];
        expect(summary).toContain("a.data");
        expect(parseEnvelopeBlock(block).payload).toEqual({ n: 1 });
      },
    ],
    [
      "TE-3",
      "base64 that is not quite right is read all the same, as the published function does",
      () => {
        const text = `${textAt(made.content, 1).replace(/=+$/, "")}\n`;
        expect(() => parseEnvelopeBlock(text)).toThrow(/base64/);
        expect(parseEnvelopeBlock(text, { lenient: true })).toMatchObject({ payload: { n: 1 } });
      },
      "strict by default",
    ],
  ],
  "Reading it in Python": [
    [
      "TE-9",
      "a Python consumer reads the same blocks: both examples are among the vectors that both are tested with",
      () => {
        const path = join(ROOT, "test/vectors/envelope-blocks.json");
        const { valid } = JSON.parse(readFileSync(path, "utf8")) as { valid: { text: string }[] };
        const texts = valid.map(({ text }) => text);
        expect(texts).toContain(workflow.block);
        expect(texts).toContain(failed.block);
      },
    ],
    [
      "TE-9",
      "it has a function of that name, which raises that message",
      () => {
        const path = join(ROOT, "python/waybill_formats/envelope_block.py");
        const source = readFileSync(path, "utf8");
        expect(source).toContain("def parse_envelope_block(");
        expect(source).toContain('"not an envelope block"');
      },
    ],
  ],
  Versions: [
    [
      "TE-4",
      "the current version is 1",
      () => expect(parseEnvelopeBlock(blockOf({ version: 1 })).meta.version).toBe(1),
    ],
    [
      "TE-4",
      "a change that breaks readers has a new version, which readers of this one refuse",
      () =>
        expect(() => parseEnvelopeBlock(blockOf({ version: 2 }, "__ENVELOPE_V2__:"))).toThrow(
          expect.objectContaining({ code: "unsupported_version" }),
        ),
    ],
    [
      "TE-5",
      "new fields of a payload need no new version",
      () => {
        const payload = { ...workflow.payload, cost: 3 };
        expect(workflowSchema.check(payload)).toBe(true);
        expect(parseEnvelopeBlock(blockOf({ version: 1 }, ENVELOPE_PREFIX, payload)).payload).toEqual(
          payload,
        );
      },
    ],
    [
      "TE-5",
      "new categories of errors need no new version",
      () => expect(errorSchema.check({ ...failure, category: "quota" })).toBe(true),
    ],
  ],
  "What consumers must do": [
    [
      "TE-4",
      "the version in meta is looked at, not the prefix alone",
      () => {
        expect(() => parseEnvelopeBlock(blockOf({ version: 2 }))).toThrow(
          expect.objectContaining({ code: "version_mismatch" }),
        );
        expect(() => parseEnvelopeBlock(blockOf({}))).toThrow(expect.objectContaining({ code: "bad_shape" }));
      },
    ],
    [
      "TE-4",
      "a version above 1 is refused, and the text is what is left",
      () => {
        for (const block of [blockOf({ version: 2 }), blockOf({ version: 2 }, "__ENVELOPE_V2__:")]) {
          const decoded = decodeToolResult(resultOf(block));
          expect(decoded).toMatchObject({ format: "mcp", text: "for people" });
          expect(decoded.odd).toHaveLength(1);
        }
      },
    ],
    [
      "TE-4",
      "or it is handled by a policy of the consumer's own, wherever the version stands",
      () => {
        const acceptVersion = (version: number) => version <= 2;
        for (const block of [blockOf({ version: 2 }), blockOf({ version: 2 }, "__ENVELOPE_V2__:")]) {
          expect(parseEnvelopeBlock(block, { acceptVersion }).meta.version).toBe(2);
          const decoded = decodeToolResult(resultOf(block), { acceptVersion });
          expect(decoded).toMatchObject({ format: "tool-envelope", data: 1 });
        }
        expect(() => parseEnvelopeBlock(blockOf({ version: 3 }), { acceptVersion })).toThrow(/version/);
      },
    ],
  ],
  "What consumers should do": [
    [
      "TE-5",
      "unknown fields of a payload disturb nobody, and are kept",
      () => {
        const result = toToolResult({ payload: { ...failure, retryAfter: 5 }, meta: META });
        const decoded = decodeToolResult(result);
        expect(decoded.error).toMatchObject({ code: failure.code, extra: { retryAfter: 5 } });
      },
    ],
    [
      "TE-5",
      "unknown categories of errors disturb nobody, and are kept",
      () => {
        const decoded = decodeToolResult(failedResult({ category: "solar_flare" }));
        expect(decoded).toMatchObject({ isError: true, error: { category: "solar_flare" } });
        expect(decoded.text).toContain("❌ Solar flare error");
      },
    ],
    [
      "TE-6",
      "where the block cannot be read the text is the fallback, with the reason",
      () => {
        const decoded = decodeToolResult(resultOf(`${ENVELOPE_PREFIX}!!!`));
        expect(decoded).toMatchObject({ format: "mcp", text: "for people", obtained: "content" });
        expect(decoded.odd).toMatchObject([{ code: "bad_base64" }]);
      },
    ],
  ],
  Examples: [
    [
      "TE-2",
      "the success: its bytes are what its objects are written as, and give them back",
      () => {
        const { payload, meta, block } = workflow;
        const { content } = toToolResult({ summaryMarkdown: "x", payload, meta: meta as typeof META });
        expect(textAt(content, 1)).toBe(block);
        expect(parseEnvelopeBlock(block)).toEqual({ payload, meta });
      },
    ],
    [
      "TE-2",
      "the error: its bytes are what its objects are written as, and give them back",
      () => {
        const { payload, meta, block } = failed;
        expect(textAt(toToolResult({ payload, meta: meta as typeof META }).content, 1)).toBe(block);
        expect(parseEnvelopeBlock(block)).toEqual({ payload, meta });
      },
    ],
    [
      "TE-8",
      "an error reads: cross, category, code and message; then details; then a suggestion",
      () =>
        expect(
          renderToolError({
            ...failure,
            details: "path.to.field is required",
            message: "It does not match.",
          }),
        ).toBe(
          [
            "❌ Validation error [ERR_INPUT_SCHEMA]: It does not match.",
            "Details: path.to.field is required",
            "Suggestion: Provide all required fields and retry",
          ].join("\n"),
        ),
    ],
    [
      "TE-2 TE-8",
      "the text of the error example has details, which its payload does not: what is rendered is the payload",
      () => {
        expect(renderToolError(failure)).not.toContain("Details:");
        expect(textAt(failedResult().content, 0)).toBe(renderToolError(failure));
      },
      "the bytes are the test vectors, not the prose",
    ],
    [
      "TE-8",
      "an error has both blocks, and says that it is one",
      () => {
        const { content, isError } = failedResult();
        expect([content.length, isError]).toEqual([2, true]);
      },
    ],
  ],
};
