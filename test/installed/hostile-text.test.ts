import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actedOn, FORGED, HOSTILE_TEXTS } from "../hostile-texts.ts";
import { openFolder, startWaybill, waybill } from "../installed-command.ts";
import { ROOT } from "../run-node.ts";
import { terminalSuite, waybillOnTerminal } from "../run-on-terminal.ts";

const all = HOSTILE_TEXTS.join(" ");

/** Operations of this process whose texts come from elsewhere. */
const MODULE = `
import { readFileSync } from "node:fs";
import { CallError, defineOperation, toolError, Type } from "waybill";
const texts = JSON.parse(readFileSync(new URL("./texts.json", import.meta.url), "utf8"));
const all = texts.join(" ");
const common = { namespace: "own", version: "1.0.0", inputSchema: Type.Unknown(), outputSchema: Type.Unknown(), description: all, type: "query" };
export const says = defineOperation({ ...common, name: "says", title: all, handler: () => texts });
export const text = defineOperation({ ...common, name: "text", handler: () => all });
export const refuses = defineOperation({
  ...common, name: "refuses", handler: ({ at }) => toolError({ texts }, { code: "NO", message: texts[at] ?? all, details: { texts } }),
});
export const breaks = defineOperation({
  ...common, name: "breaks", handler: ({ at }) => { throw new CallError("NOT_FOUND", texts[at] ?? all, { details: { texts, [all]: all } }); },
});
export const each = defineOperation({ ...common, name: "each", type: "subscription", async *handler() { yield* texts; } });
export const strict = defineOperation({
  ...common, name: "strict", handler: () => 1,
  inputSchema: Type.Object(Object.fromEntries(texts.map((text) => [text + "k", Type.Integer()])), { additionalProperties: false }),
});
`;

const folder = openFolder();
const env = { WAYBILL_STATE_DIR: folder.state, HOME: folder.state };
const textsFile = join(folder.path, "texts.json");
const config = (name: string) => join(folder.path, name);
let api: Server;
let apiUrl: string;

function openApi(): unknown {
  const operation = (at: number, text: string) => ({
    operationId: `op${at}`,
    summary: text,
    description: text,
    tags: [text],
    parameters: [
      { name: `${text}q`, in: "query", description: text, schema: { type: "string", enum: [text, "x"] } },
    ],
    responses: { 200: { description: text, content: { "application/json": { schema: { title: text } } } } },
  });
  const paths = Object.fromEntries(
    HOSTILE_TEXTS.map((text, at) => [`/p${at}`, { get: operation(at, text) }]),
  );
  const fails = { get: { operationId: "fails", description: all, responses: { 200: { description: all } } } };
  const info = { title: all, version: all, description: all };
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: apiUrl, description: all }],
    paths: { ...paths, "/fails": fails },
  };
}

beforeAll(async () => {
  api = createServer((request, response) => {
    const status = request.url?.startsWith("/fails") ? 422 : 200;
    response.writeHead(status, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ title: all, detail: all, message: all, code: all, texts: HOSTILE_TEXTS }));
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const address = api.address();
  apiUrl = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const mcpServers = {
    bad: { command: process.execPath, args: [join(ROOT, "test/mcp-children/hostile-texts.js"), textsFile] },
    [`key ${all.slice(0, 200)}`]: { command: `no-such-${all}`, args: [all] },
  };
  const files: Record<string, string> = {
    "texts.json": JSON.stringify(HOSTILE_TEXTS),
    "own.mjs": MODULE,
    "api.json": JSON.stringify(openApi()),
    "waybill.config.json": JSON.stringify({
      mcpServers,
      openapi: { api: { document: "api.json", allowPrivate: true } },
      operations: "own.mjs",
    }),
    "own.json": JSON.stringify({ operations: "own.mjs" }),
    "broken.json": JSON.stringify({
      [all]: 1,
      openapi: { [all]: { document: all } },
      serve: { host: all, format: all },
    }),
    "results.jsonl": resultLines(),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(config(name), text);
});

afterAll(() => {
  api.close();
  folder.remove();
});

/** Results of many kinds, one in each line. */
function resultLines(): string {
  const results = HOSTILE_TEXTS.flatMap((text) => [
    { content: [{ type: "text", text }], isError: true },
    { content: [{ type: "text", text }], structuredContent: { [text]: text } },
    { jsonrpc: "2.0", id: 1, error: { code: -32_000, message: text, data: { [text]: text } } },
  ]);
  return results.map((result) => `${JSON.stringify(result)}\n`).join("");
}

/** What is run, with the exit code. */
const COMMANDS: readonly (readonly [code: number, ...args: string[]])[] = [
  [0, "list"],
  [0, "list", "--json"],
  [0, "list", "--sources"],
  [0, "list", "bad.*"],
  [0, "describe", "bad.fields"],
  [0, "describe", "bad.fields", "--json"],
  [0, "describe", "api.op3"],
  [0, "describe", "own.strict"],
  [0, "call", "bad.says"],
  [0, "call", "bad.says", "--envelope"],
  [0, "call", "bad.says", "--progress"],
  [0, "call", "bad.says", "--format", "status-envelope"],
  [1, "call", "bad.refuses"],
  [1, "call", "bad.refuses", "--raw"],
  [3, "call", "bad.breaks"],
  [3, "call", "bad.breaks", "--json"],
  [3, "call", "bad.breaks", "--format", "tool-envelope"],
  [1, "call", "bad.envelope"],
  [1, "call", "bad.envelope", "--envelope"],
  [3, "call", "api.fails"],
  [0, "call", "api.op1", "--json"],
  [0, "call", "own.text", "--raw"],
  [0, "call", "own.each"],
  [1, "call", "own.refuses", "--json"],
  [3, "call", "own.breaks"],
  [3, "call", "own.strict", '{"\\u001b[31mx":1}'],
  [3, "call", "own.strict", "x=1"],
  [0, "decode", "results.jsonl"],
  [0, "decode", "results.jsonl", "--json"],
  [0, "decode", "results.jsonl", "--losses"],
  [1, "check", "bad", "--call-all", "--verbose"],
  [1, "check", "bad", "--junit"],
  [0, "check", "api.json", "--verbose"],
  [1, "doctor"],
  [1, "doctor", "--json"],
  [3, "lock"],
  [3, "lock", "--json"],
  [0, "lock", "--approve", "bad", "--yes", "--json"],
  [0, "types", "--out", "-", "--partial"],
  [2, "list", "-c", "broken.json"],
  [2, "doctor", "-c", "broken.json"],
  [0, "complete", "--", "call", "bad."],
];

/** Those that are written in another way on a terminal. */
const ON_TERMINALS = [
  "call api.fails",
  "call bad.breaks",
  "call bad.envelope",
  "call bad.envelope --envelope",
  "call bad.refuses",
  "call bad.says",
  "call bad.says --progress",
  "call own.breaks",
  "call own.each",
  "call own.text --raw",
  "check api.json --verbose",
  "check bad --call-all --verbose",
  "decode results.jsonl",
  "describe bad.fields",
  "doctor",
  "list",
  "list --sources",
  "list -c broken.json",
  "lock",
];

/** Texts for people may have several lines there; nowhere else does a line begin as ours do. */
const KEEPS_LINES = new Set(["describe", "types"]);

function expectNothingActedOn(args: readonly string[], output: string, isTerminal: boolean): void {
  expect(actedOn(output, isTerminal), args.join(" ")).toBeUndefined();
  if (KEEPS_LINES.has(args[0] as string) || args.includes("--raw")) return;
  const lines = output.split(/\r?\n/);
  expect(
    lines.filter((line) => line.startsWith(FORGED)),
    args.join(" "),
  ).toEqual([]);
}

describe("more than a hundred hostile texts", () => {
  it("are more than a hundred", () => expect(HOSTILE_TEXTS.length).toBeGreaterThan(100));
});

describe.concurrent("hostile texts in a pipe", () => {
  it.each(COMMANDS.map(([code, ...args]) => [args.join(" "), args, code] as const))(
    "%s",
    async (_, args, code) => {
      const ran = await waybill(args, { cwd: folder.path, env });
      expectNothingActedOn(args, ran.stdout, false);
      expectNothingActedOn(args, ran.stderr, false);
      expect(ran.stderr).not.toMatch(/unexpected failure|^ {4}at /m);
      expect(ran.code, ran.stderr).toBe(code);
      expect(ran.stdout + ran.stderr).not.toBe("");
    },
  );

  it("come out of JSON as they went in", async () => {
    const ran = await waybill(["call", "own.says", "--json", "-c", "own.json"], { cwd: folder.path, env });
    // A surrogate that stands alone becomes a mark on its way.
    const wellFormed = (text: string): string => Buffer.from(text).toString();
    expect(JSON.parse(ran.stdout).map(wellFormed)).toEqual(HOSTILE_TEXTS.map(wellFormed));
  });
});

terminalSuite("hostile texts on a terminal", () => {
  describe.concurrent("of", () => {
    it.each(ON_TERMINALS)("%s", async (line) => {
      const args = line.split(" ");
      const ran = await waybillOnTerminal(args, { cwd: folder.path, env });
      expect(ran.late).toBe(false);
      expectNothingActedOn(args, ran.screen, true);
      expect(ran.screen).not.toBe("");
    });
  });

  it("of serve: neither the table nor the log", async () => {
    const started = waybillOnTerminal(
      ["serve", "--port", "0", "--lame-duck", "0", "--log-level", "debug", "--no-watch"],
      {
        cwd: folder.path,
        env,
        steps: [{ seen: "Try in another terminal[\\s\\S]*\\n\\r?\\n", type: "\u0003" }],
      },
    );
    const ran = await started;
    expect([ran.code, ran.left], ran.screen).toEqual([0, []]);
    expectNothingActedOn(["serve"], ran.screen, true);
  });
});

describe.concurrent("hostile texts in the log of serve", () => {
  it.each(["json", "text"])("as %s, with a record for every call", async (format) => {
    const args = [
      "serve",
      "--port",
      "0",
      "--lame-duck",
      "0",
      "--log-level",
      "debug",
      "--log-format",
      format,
      "--no-watch",
    ];
    const serving = startWaybill(args, { cwd: folder.path, env });
    const [, url] = await serving.says(/(http:\/\/127\.0\.0\.1:\d+)/);
    const calls = HOSTILE_TEXTS.flatMap((_, at) => [
      { operation: "own.refuses", input: { at } },
      { operation: "own.breaks", input: { at } },
    ]);
    const more = ["bad.breaks", "bad.refuses", "bad.envelope", "api.fails", ...HOSTILE_TEXTS.slice(0, 60)];
    for (const operation of more) calls.push({ operation, input: { at: -1 } });
    const headers = { "content-type": "application/json", "user-agent": "x" };
    for (const call of calls)
      await (await fetch(`${url}/call`, { method: "POST", headers, body: JSON.stringify(call) })).text();
    await fetch(`${url}/metrics`).then(async (answer) =>
      expectNothingActedOn(["metrics"], await answer.text(), false),
    );
    expect((await serving.stop()).code, serving.stderr()).toBe(0);
    expectNothingActedOn(args, serving.stderr(), false);
    expect(serving.stdout()).toBe("");
    expect(serving.stderr()).toContain("own.refuses");
    if (format === "json")
      for (const line of serving.stderr().trim().split("\n"))
        expect(() => JSON.parse(line), line).not.toThrow();
  });
});
