import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeToolResult } from "../src/formats/index.ts";
import { pairsOf, STAND_INS } from "./document-blocks.ts";
import { natsSuite, startNats } from "./nats-server.ts";
import { HARDENED, ROOT, runNode } from "./run-node.ts";
import { toJavaScript, typeErrors } from "./type-check.ts";

const FOLDERS = [".", "docs", "docs/decisions", "bench", "python"];

const documents = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** The TypeScript blocks of a page that need the same things, in order, as one program. */
const programOf = (page: string, kind = "ts") =>
  [...page.matchAll(/^```(ts(?: nats)?)\n(.*?)^```$/gms)]
    .filter((match) => match[1] === kind)
    .map((match) => match[2])
    .join("\n");

function withStandIns(program: string): string {
  return Object.entries(STAND_INS).reduce(
    (text, [asked, name]) => text.replaceAll(`from "${asked}"`, `from "${name}"`),
    program,
  );
}

const README = read("README.md");
const EXAMPLE = programOf(README);
const CORE = programOf(read("docs/core.md"));
const FORMATS = programOf(read("docs/formats.md"));
const CALL = programOf(read("docs/call.md"));
const MCP = programOf(read("docs/mcp.md"));
const OPENAPI = programOf(read("docs/openapi.md"));
const GATEWAY = programOf(read("docs/gateway.md"));
const RECIPES = programOf(read("docs/recipes.md"));
/** The programs of the page for users of other libraries, by section; those of packages that are not installed are left out. */
const COMING_FROM = Object.fromEntries(
  pairsOf(read("docs/coming-from.md"))
    .flatMap(({ title, before, after }) =>
      [...before, ...after].map((program, index) => [`${title} ${index}`, program] as const),
    )
    .filter(([, program]) => !/from "(?:fastmcp|@orpc\/server)"/.test(program))
    .map(([name, program]) => [`coming from ${name}`.replaceAll(/\W+/g, "-"), withStandIns(program)]),
);
const CALL_NATS = programOf(read("docs/call.md"), "ts nats");

describe("the README", () => {
  it("shows an example of twenty lines that prints what it says", async () => {
    const lines = EXAMPLE.split("\n").filter((line) => line.trim() !== "").length;
    expect(lines).toBeGreaterThan(10);
    expect(lines).toBeLessThanOrEqual(20);
    const stdout = /^```text\n(\{.*?)^```$/ms.exec(README)?.[1];
    const ran = await runNode(["--input-type=module", "-"], { stdin: toJavaScript(EXAMPLE) });
    expect(ran).toEqual({ code: 0, stdout, stderr: "" });
  });

  it("shows a tool result before and after, as it is", () => {
    const [before, after] = [...README.matchAll(/^```json\n(.*?)^```$/gms)].map(([, text = ""]) =>
      JSON.parse(text),
    );
    const { data, isError, obtained } = decodeToolResult(before, { recoverJson: true });
    expect(after).toMatchObject({ data, meta: { isError, waybill: { obtained } } });
  });

  it("starts with the two commands, the second of which is what CI runs", () => {
    const commands = README.match(/^npm ci && npm \w+/gm);
    expect(commands).toEqual(["npm ci && npm start", "npm ci && npm test"]);
    expect(read(".ci/run")).toMatch(/^npm ci && npm test$/m);
  });
});

describe.each([
  ["docs/core.md", CORE],
  ["docs/formats.md", FORMATS],
  ["docs/call.md", CALL],
  ["docs/mcp.md", MCP],
  ["docs/openapi.md", OPENAPI],
  ["docs/gateway.md", GATEWAY],
  ["docs/recipes.md", RECIPES],
])("%s", (_, program) => {
  it("is one program that runs", async () => {
    const ran = await runNode(["--input-type=module", "-"], { stdin: toJavaScript(program) });
    expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

natsSuite("docs/call.md, over NATS", () => {
  it("is one program that runs", async () => {
    const nats = await startNats({ jetstream: true });
    try {
      const env = { NATS_URL: nats.url };
      const ran = await runNode(["--input-type=module", "-"], { stdin: toJavaScript(CALL_NATS), env });
      expect(ran).toEqual({ code: 0, stdout: "", stderr: "" });
    } finally {
      await nats.stop();
    }
  });
});

describe("the documents", () => {
  // Types do not depend on the flags of the second run.
  it.runIf(!HARDENED)(
    "hold code that type-checks against the built declarations",
    { timeout: 120_000 },
    () => {
      const broken = EXAMPLE.replace('{ title: "Ship it" }', "{ title: 7 }");
      const errors = typeErrors({
        readme: EXAMPLE,
        core: CORE,
        formats: FORMATS,
        call: CALL,
        callNats: CALL_NATS,
        gateway: GATEWAY,
        recipes: RECIPES,
        ...COMING_FROM,
        broken,
      });
      expect(errors).toEqual({
        readme: [],
        core: [],
        formats: [],
        call: [],
        callNats: [],
        gateway: [],
        recipes: [],
        ...Object.fromEntries(Object.keys(COMING_FROM).map((name) => [name, []])),
        broken: [expect.stringContaining("not assignable")],
      });
    },
  );

  it.each(documents)("%s links only to files that exist", (path) => {
    const links = [...read(path).matchAll(/\]\((?![a-z]+:|#)([^)#]+)/g)].map((match) => match[1] ?? "");
    expect(links.filter((link) => !existsSync(join(ROOT, path, "..", link)))).toEqual([]);
  });

  it.each(documents)("%s names only files that exist", (path) => {
    const named = [...read(path).matchAll(/(?<=[`\s])(?:src|test|examples|scripts|docs)\/[\w./-]*[\w/]/g)];
    expect(named.map((match) => match[0]).filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it("list every decision in the index", () => {
    const pages = readdirSync(join(ROOT, "docs/decisions")).filter((name) => /^\d/.test(name));
    expect(pages.filter((name) => !read("docs/decisions/README.md").includes(`(${name})`))).toEqual([]);
  });
});
