import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { until } from "../../test/make-operation.ts";
import { createMemoryIo, type MemoryIoOptions } from "../../test/memory-io.ts";
import { withoutConfigLine } from "../../test/run-node.ts";
import { COMMANDS } from "./command-table.ts";
import { createProgram } from "./create-program.ts";
import { runWaybill } from "./run-waybill.ts";

const OPERATIONS = `
const shared = { namespace: "shop", version: "1.0.0", description: "Does something." };
const object = (properties, required = []) => ({ type: "object", properties, required });
export const add = { ...shared, id: "shop.add", name: "add", type: "query", description: "Adds \\u001b[31mnumbers.",
  inputSchema: object({ a: { type: "integer" }, b: { type: "integer", default: 1 } }, ["a"]),
  outputSchema: object({ sum: { type: "integer" } }, ["sum"]),
  handler: ({ a, b }) => ({ sum: a + b }) };
export const text = { ...shared, id: "shop.text", name: "text", type: "query", handler: () => "\\u001b[2Jplain\\ntext" };
export const bytes = { ...shared, id: "shop.bytes", name: "bytes", type: "query", handler: () => new Uint8Array([0, 255]) };
export const broken = { ...shared, id: "shop.broken", name: "broken", type: "query", handler: () => { throw new Error("secret stack"); } };
export const count = { ...shared, id: "shop.count", name: "count", type: "subscription",
  async *handler() { for (let n = 1; ; n++) { globalThis.waybillTestCount = n; yield n; } } };
export const misfit = { ...shared, id: "shop.misfit", name: "misfit", type: "query", outputSchema: object({ sum: { type: "integer" } }, ["sum"]), handler: () => ({ sum: "many" }) };
export const order = { ...shared, id: "shop.order", name: "order", type: "mutation",
  inputSchema: { ...object({ body: object({ item: { type: "integer" } }), kg: { type: "integer" } }), additionalProperties: false }, handler: () => 1 };
export const guarded = { ...shared, id: "shop.guarded", name: "guarded", type: "query", tier: "pro",
  access: { scopes: { allOf: ["a"], anyOf: ["b"] }, resource: { pointer: "/place", type: "place" } }, handler: (_, { identity }) => identity.subject !== "" };
export const hidden = { ...shared, id: "shop.hidden", name: "hidden", type: "query", visibility: "internal", handler: () => 1 };
`;

const folder = mkdtempSync(join(tmpdir(), "waybill-command-"));
writeFileSync(join(folder, "shop.mjs"), OPERATIONS);
writeFileSync(
  join(folder, "waybill.config.json"),
  JSON.stringify({ operations: "shop.mjs", mcpServers: { gone: { command: "no-such-command-here" } } }),
);
const env = { WAYBILL_STATE_DIR: join(folder, "state") };

async function run(args: string[], options: MemoryIoOptions = {}) {
  const io = createMemoryIo({ cwd: folder, env, ...options });
  const code = await runWaybill(io, args);
  await new Promise((resolve) => setImmediate(resolve));
  return { code, out: io.out(), err: withoutConfigLine(io.err()) };
}

describe("the command as a whole", () => {
  it("prints its help when asked and when it is alone", async () => {
    const alone = await run([]);
    expect(alone).toMatchObject({
      code: 0,
      out: expect.stringContaining("Usage: waybill <command>"),
      err: "",
    });
    for (const args of [["--help"], ["-h"], ["help"]]) expect(await run(args)).toEqual(alone);
    for (const { name, hidden } of COMMANDS) expect(alone.out.includes(`  ${name} `)).toBe(!hidden);
  });

  it.each(COMMANDS.filter(({ hidden }) => !hidden).map((row) => [row.name, row] as const))(
    "%s has a help, with the summary of the table",
    async (name, row) => {
      const [byFlag, byWord] = await Promise.all([run([name, "--help"]), run(["help", name])]);
      expect(byFlag).toMatchObject({ code: 0, err: "" });
      expect(byFlag.out).toContain(`Usage: waybill ${name}`);
      expect(byWord).toEqual(byFlag);
      const io = createMemoryIo();
      const [command] = createProgram(io, [await row.load()]).commands;
      expect(command?.name()).toBe(name);
    },
  );

  it.each([
    [["lst"], 'waybill: there is no command "lst"; did you mean "list"?\n'],
    [["quantum"], 'waybill: there is no command "quantum"; "waybill help" lists what there is.\n'],
    [["--versoin"], "waybill: there is no option --versoin; did you mean --version?\n"],
    [["list", "--jsno"], "waybill: there is no option --jsno; did you mean --json?\n"],
    [["encode", "1", "--format", "mcp"], "waybill: there is no option --format; did you mean --to?\n"],
    [["call"], 'waybill: "call" needs <operation>; "waybill call --help" tells more.\n'],
    [["list", "--config"], 'waybill: -c, --config <file> needs a value; "waybill list --help" tells more.\n'],
    [["list", "-c", "none.json"], 'waybill: The config "none.json" does not exist.\n'],
    [
      ["call", "shop.add", "--timeout", "soon"],
      'waybill: --timeout takes a time such as 500ms, 5s or 2m; it is "soon".\n',
    ],
    [["call", "shop.add", "--format", "xml"], expect.stringContaining("--format takes one of tool-envelope")],
    [
      ["call", "shop.add", "--raw", "--envelope"],
      "waybill: --envelope and --raw cannot be given together.\n",
    ],
    [["call", "shop.add", "{"], "waybill: The input is not JSON: it ends too early.\n"],
    [["completion", "tcsh"], 'waybill: completion takes one of bash, zsh, fish, powershell; it is "tcsh".\n'],
  ])("answers %j with one line and exit code 2", async (args, err) => {
    expect(await run(args)).toEqual({ code: 2, out: "", err });
  });

  it("RE-30 takes no secret by a flag: one that is about a secret names the variable that holds it", async () => {
    const program = createProgram(createMemoryIo(), await Promise.all(COMMANDS.map(({ load }) => load())));
    const flags = program.commands.flatMap(({ options }) => options.map(({ flags: spelled }) => spelled));
    const about = flags.filter((spelled) =>
      /token|secret|passw|key|auth|bearer|header|cookie|env\b/i.test(spelled),
    );
    expect([...new Set(about)].sort()).toEqual(["--idempotency-key <key>", "--token-env <name>"]);
  });

  it("shows nothing of an argument that a terminal acts on", async () => {
    const { err } = await run(["\u001b[31mred"]);
    expect(err).toBe('waybill: there is no command "red"; "waybill help" lists what there is.\n');
  });
});

describe("waybill list", () => {
  it("lists operations, and on stderr what is down", async () => {
    const { code, out, err } = await run(["list"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^OPERATION +TYPE +SOURCE +DESCRIPTION\nshop\.add +query +local +Adds numbers\.\n/);
    expect(out).not.toContain("shop.hidden");
    expect(err).toMatch(/^waybill: The source "gone" is down: .*no-such-command-here.*\n$/);
    expect(await run(["list", "--strict", "-q"])).toMatchObject({ code: 3 });
  });

  it("takes words, patterns, and asks for nothing more than there is", async () => {
    expect((await run(["list", "shop.{add,text}"])).out.trim().split("\n")).toHaveLength(3);
    expect((await run(["list", "ADDS numb"])).out).not.toContain("shop.text");
    expect(await run(["list", "zzz"])).toMatchObject({ code: 0, out: "" });
  });

  it("writes everything as JSON, and sources as a table", async () => {
    const { operations, sources } = JSON.parse((await run(["list", "shop.add", "--json"])).out);
    expect(operations).toMatchObject([
      { id: "shop.add", type: "query", source: "local", inputSchema: { required: ["a"] } },
    ]);
    expect(sources).toMatchObject([{ name: "gone", state: { status: "down" } }, { name: "local" }]);
    expect((await run(["list", "--sources"])).out).toMatch(/\ngone +down +mcp +0 .*\nlocal +up +local +9 /);
  });
});

describe("the config of a command", () => {
  it("RE-30 is named on stderr before it is used, unless the command must be quiet", async () => {
    const told = async (...args: string[]) => {
      const io = createMemoryIo({ cwd: folder, env });
      await runWaybill(io, args);
      await new Promise((resolve) => setImmediate(resolve));
      return io.err();
    };
    const line = `waybill: using ${join(folder, "waybill.config.json")}\n`;
    expect(await told("call", "shop.add", "a=1")).toBe(line);
    expect(await told("call", "shop.add", "a=1", "--json")).toBe(line);
    expect(await told("describe", "shop.add", "-c", "waybill.config.json")).toBe(line);
    expect(await told("call", "shop.add", "a=1", "--quiet")).toBe("");
  });
});

describe("waybill describe", () => {
  it("shows fields and an example that works", async () => {
    const { code, out } = await run(["describe", "shop.add"]);
    expect(code).toBe(0);
    expect(out).toContain("Adds numbers.");
    expect(out).toMatch(/a +integer +yes/);
    const { example } = JSON.parse((await run(["describe", "shop.add", "--json"])).out);
    expect(example).toBe("waybill call shop.add a=1");
    expect(await run(example.split(" ").slice(1))).toMatchObject({ code: 0, out: '{"sum":2}\n' });
  });

  it("says the nearest names of one that is not there", async () => {
    const err = 'waybill: There is no operation "shop.ad"; did you mean "shop.add"?\n';
    expect(await run(["describe", "shop.ad"])).toEqual({ code: 3, out: "", err });
    expect(await run(["call", "shop.ad"])).toEqual({ code: 3, out: "", err });
    expect(await run(["call", "shop.hidden"])).toMatchObject({ code: 3 });
  });

  it("does not suggest what was asked for", async () => {
    await run(["list"]);
    const { code, err } = await run(["call", "shop.add", "a=1"], { cwd: folder });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const config = readFileSync(join(folder, "waybill.config.json"), "utf8");
    try {
      writeFileSync(join(folder, "waybill.config.json"), JSON.stringify({ operations: "none.mjs" }));
      expect(await run(["call", "shop.add", "a=1"])).toMatchObject({
        code: 3,
        err: 'waybill: There is no operation "shop.add" any more.\n  No file is found by "none.mjs", which "operations" of the config names.\n',
      });
    } finally {
      writeFileSync(join(folder, "waybill.config.json"), config);
    }
  });
});

describe("waybill call", () => {
  it("prints data: compact in a pipe, in lines on a terminal", async () => {
    expect(await run(["call", "shop.add", "a=1", "b=2"])).toEqual({ code: 0, out: '{"sum":3}\n', err: "" });
    const terminal = { columns: 80, env: { ...env, NO_COLOR: "1" } };
    expect((await run(["call", "shop.add", "a=1"], terminal)).out).toBe('{\n  "sum": 2\n}\n');
    expect((await run(["call", "shop.add", "a=1", "--json"], terminal)).out).toBe('{"sum":2}\n');
    expect((await run(["call", "shop.add", "a=1"], { columns: 80 })).out).toContain("\u001b[");
  });

  it("reads stdin when asked", async () => {
    expect(await run(["call", "shop.add", "-"], { stdin: '{"a":4}' })).toMatchObject({ out: '{"sum":5}\n' });
  });

  it("writes envelopes and formats", async () => {
    const envelope = JSON.parse((await run(["call", "shop.add", "a=1", "--envelope"])).out);
    expect(envelope).toMatchObject({ data: { sum: 2 }, meta: { source: "local", operationId: "shop.add" } });
    const result = JSON.parse((await run(["call", "shop.add", "a=1", "--format", "mcp"])).out);
    expect(result.structuredContent).toEqual({ sum: 2 });
  });

  it("writes text cleaned, and bytes to files alone", async () => {
    expect((await run(["call", "shop.text", "--raw"])).out).toBe("plain\ntext\n");
    const file = join(folder, "bytes.out");
    expect(await run(["call", "shop.bytes", "-o", "bytes.out"])).toMatchObject({ code: 0, out: "" });
    expect([...readFileSync(file)]).toEqual([0, 255]);
    const shown = await run(["call", "shop.bytes"], { columns: 80, env: { ...env, NO_COLOR: "1" } });
    expect(shown.out).toBe('"(2 bytes of application/octet-stream; --output <file> saves them)"\n');
    expect(await run(["call", "shop.text", "-o", "no/such/folder"])).toMatchObject({ code: 2 });
  });

  it("writes a failure in the format that was asked for, to a file too", async () => {
    const { code, out } = await run(["call", "shop.add", "--format", "mcp", "-o", "failed.json", "-q"]);
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(JSON.parse(readFileSync(join(folder, "failed.json"), "utf8"))).toMatchObject({ isError: true });
  });

  it("holds every right that its own config asks for", async () => {
    expect(await run(["call", "shop.guarded", "place=Lisbon"])).toMatchObject({ code: 0, out: "true\n" });
  });

  it("says on stderr that an output misses its schema, unless it must be quiet", async () => {
    const told =
      "waybill: the output does not match its schema:\n  sum must be integer; it is string of 4 characters\n";
    expect(await run(["call", "shop.misfit"])).toEqual({ code: 0, out: '{"sum":"many"}\n', err: told });
    expect((await run(["call", "shop.misfit", "-q"])).err).toBe("");
  });

  it.each([
    [["--take", "2"], '--take goes with a subscription, or with --all; "shop.add" is a query.'],
    [
      ["--idempotency-key", "k"],
      "--idempotency-key goes with --url: it is the running gateway that keeps keys.",
    ],
  ])("refuses %j where it would do nothing", async (flags, says) => {
    expect(await run(["call", "shop.add", "a=1", ...flags])).toEqual({
      code: 2,
      out: "",
      err: `waybill: ${says}\n`,
    });
  });

  it("suggests the place of a member, and nothing that is not near", async () => {
    expect((await run(["call", "shop.order", '{"item":2}'])).err).toContain('did you mean "body.item"?');
    expect((await run(["call", "shop.order", "to=Lisbon"])).err).not.toContain("did you mean");
  });

  it("takes a member without the only one that can hold it", async () => {
    expect(await run(["call", "shop.order", "item=2", "kg=1"])).toMatchObject({ code: 0, err: "" });
    expect(await run(["call", "shop.order", "item=2", "body.item=3"])).toMatchObject({
      code: 2,
      err: 'waybill: "body.item" is given more than once, but takes one value.\n',
    });
  });

  it("says how a time without a unit was read", async () => {
    const { code, err } = await run(["call", "shop.add", "a=1", "--timeout", "20"]);
    expect([code, err.split("\n", 1)]).toEqual([
      0,
      ["waybill: --timeout 20 is read as 20s; write 20s or 20ms."],
    ]);
    expect((await run(["call", "shop.add", "a=1", "--timeout", "20s"])).err).toBe("");
  });

  it("follows a subscription for as many values as are wanted", async () => {
    expect(await run(["call", "shop.count", "--take", "3"])).toEqual({ code: 0, out: "1\n2\n3\n", err: "" });
  });

  it("ends at Ctrl-C with 130", async () => {
    const controller = new AbortController();
    const counted = () => (globalThis as { waybillTestCount?: number }).waybillTestCount ?? 0;
    Reflect.deleteProperty(globalThis, "waybillTestCount");
    const running = run(["call", "shop.count", "--output", "count.out", "-q"], { signal: controller.signal });
    await until(() => counted() > 1_000);
    controller.abort();
    expect(await running).toMatchObject({ code: 130, err: "" });
  });

  it("says what is wrong with the input, field by field", async () => {
    const { code, out, err } = await run(["call", "shop.add", "a=x", "b=1.5"]);
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(err).toMatch(
      /^waybill: The input of "shop\.add" does not match its schema\. \(VALIDATION_ERROR\)\n/,
    );
    expect(err).toContain("(VALIDATION_ERROR)\n  a must be integer; it is string of 1 character\n");
    expect(err).toContain('"waybill describe shop.add" shows what it takes.');
    expect((await run(["call", "shop.add"])).err).toContain("  a is missing\n");
    const json = await run(["call", "shop.add", "a=x", "--json"]);
    expect(JSON.parse(json.err)).toMatchObject({ error: { code: "VALIDATION_ERROR" } });
  });

  it("says what a handler threw only where that is asked for, and why a source is down", async () => {
    const broken = await run(["call", "shop.broken"]);
    expect(broken).toMatchObject({ code: 3, out: "" });
    expect(broken.err).not.toContain("secret stack");
    expect((await run(["call", "shop.broken", "--verbose"])).err).toContain("threw Error: secret stack\n");
    const json = await run(["call", "shop.broken", "--json"]);
    expect(json.err + json.out).not.toContain("secret stack");
    const gone = await run(["call", "gone.anything"]);
    expect(gone.code).toBe(3);
    expect(gone.err).toMatch(/^waybill: The source "gone" is down: .*no-such-command-here/);
  });
});

describe("completion", () => {
  it("offers commands, flags, values and names of operations", async () => {
    expect((await run(["complete", "--", "des"])).out).toMatch(/^describe\t.*\n:4\n$/);
    expect((await run(["complete", "--", "call", "--form"])).out).toMatch(/^--format\t/);
    expect((await run(["complete", "--", "call", "x", "--format", "ti"])).out).toBe(
      "tiered-envelope\t\n:4\n",
    );
    await run(["list"]);
    expect(await run(["complete", "--", "call", "shop.a"])).toEqual({
      code: 0,
      out: "shop.add\tAdds numbers.\n:4\n",
      err: "",
    });
    expect((await run(["complete", "--", "list", "-c", "waybill"])).out).toContain("waybill.config.json\t");
  });

  it.each(["bash", "zsh", "fish", "powershell"])("has a script for %s", async (shell) => {
    const { code, out, err } = await run(["completion", shell]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("waybill complete");
    if (shell === "bash") expect(out).not.toMatch(/^readonly/m);
    expect(out).not.toMatch(/^[^#\n]*\beval\b(?!-ed)/m);
  });
});

describe("a word that is none of those there are", () => {
  it.each([
    [["connect", "emacs"], '"connect" takes one of claude, cursor, vscode, codex; it is "emacs".'],
    [
      ["connect", "cursr"],
      '"connect" takes one of claude, cursor, vscode, codex; it is "cursr"; did you mean "cursor"?',
    ],
    [
      ["approvals", "aprove"],
      '"approvals" takes one of list, show, approve, deny; it is "aprove"; did you mean "approve"?',
    ],
    [["init", "--format", "tmol"], '--format takes one of json, yaml, ts; it is "tmol".'],
  ])("%j", async (args, message) => {
    const io = createMemoryIo();
    expect(await runWaybill(io, args)).toBe(2);
    expect(io.err()).toBe(`waybill: ${message}\n`);
  });
});
