import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FORMAT_NAMES } from "../../src/formats/index.ts";
import { type UsedFolder, useFolder } from "../installed-folder.ts";
import { runCommand } from "../run-node.ts";

/** A module of operations that show what came in, and how calls end. */
const ECHO = `
import { defineOperation, toolError, Type } from "waybill";
const make = (name, rest) =>
  defineOperation({ namespace: "echo", name, version: "1.0.0", type: "query", description: \`Does \${name}.\`, ...rest });
const Place = Type.Object({ city: Type.String(), zip: Type.Optional(Type.Number()) });
export const say = make("say", {
  inputSchema: Type.Object({
    text: Type.String(),
    count: Type.Optional(Type.Integer()),
    loud: Type.Optional(Type.Boolean()),
    tags: Type.Optional(Type.Array(Type.String())),
    to: Type.Optional(Place),
    any: Type.Optional(Type.Unknown()),
  }),
  handler: (input) => input,
});
export const text = make("text", { handler: () => "two\\nlines" });
export const no = make("no", { handler: () => toolError({ open: false }, { code: "CLOSED", message: "It is closed." }) });
export const breaks = make("breaks", { handler: () => { throw new Error("words of the inside"); } });
export const waits = make("waits", { handler: (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)) });
`;

let folder: UsedFolder;
beforeAll(() => {
  folder = useFolder();
  folder.write("echo.mjs", ECHO);
  folder.write("waybill.config.json", { operations: "echo.mjs" });
  folder.write("whole.json", { text: "from a file", count: 1 });
  folder.write("words.txt", "three\nshort lines\n");
});
afterAll(() => folder.remove());

describe("the command", () => {
  it("RE-30 explains itself, with every command that there is", async () => {
    const { code, stdout, stderr } = await folder.run(["--help"]);
    expect([code, stderr]).toEqual([0, ""]);
    const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name as string);
    expect(names).toEqual(
      [
        "serve inspect init connect doctor login logout auth list describe call tasks types decode".split(
          " ",
        ),
        "encode transcode check lock audit approvals completion tour".split(" "),
      ].flat(),
    );
    const helps = await Promise.all(names.map((name) => folder.run([name, "--help"])));
    for (const [index, help] of helps.entries()) {
      expect([help.code, help.stderr]).toEqual([0, ""]);
      expect(help.stdout).toMatch(new RegExp(`^Usage: waybill ${names[index]}`));
      expect(help.stdout).toMatch(/^Examples/m);
      expect(help.stdout).toMatch(new RegExp(`^ {2}.*npx --no waybill ${names[index]}`, "m"));
    }
  });

  it("RE-30 has examples that work in the embedded default", async () => {
    const place = useFolder();
    place.write("parcel.json", { to: "Basel" });
    const helps = await Promise.all(
      [[], ["list"], ["describe"], ["call"], ["decode"]].map((name) => place.run([...name, "--help"])),
    );
    const lines = helps.flatMap(({ stdout }) =>
      [...stdout.matchAll(/^ {2}((?:\S.*\| )?npx --no waybill (?:\S| (?! ))*parcel(?:\S| (?! ))*)/gm)].map(
        ([, line]) => line as string,
      ),
    );
    expect(lines.length).toBeGreaterThanOrEqual(9);
    const ran = await Promise.all(
      [...new Set(lines)].map(async (line) => ({ line, ...(await place.shell(line)) })),
    );
    expect(ran.filter(({ code, stderr }) => code !== 0 || stderr !== "")).toEqual([]);
    await place.remove();
  });

  it("RE-30 gives a tour", async () => {
    const { code, stdout } = await folder.run(["tour"]);
    expect([code, stdout.length > 500]).toEqual([0, true]);
  });

  it.each([
    ["bash", "bash", ["-n"]],
    ["zsh", "compdef", undefined],
    ["fish", "complete", undefined],
    ["powershell", "Register-ArgumentCompleter", undefined],
  ])("RE-30 writes the completion script of %s", async (shell, word, check) => {
    const { code, stdout, stderr } = await folder.run(["completion", shell]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("waybill");
    expect(stdout).toContain(word);
    if (check === undefined) return;
    expect(await runCommand("bash", check, { stdin: stdout })).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

describe("list and describe", () => {
  it("RE-30 lists operations by pattern and by word, for people and for programs", async () => {
    const [all, some, found, none] = await Promise.all([
      folder.run(["list"]),
      folder.run(["list", "echo.{no,say}", "--json"]),
      folder.run(["list", "breaks"]),
      folder.run(["list", "nothing-like-it"]),
    ]);
    expect(all.stdout).toMatch(
      /^OPERATION +TYPE +SOURCE +DESCRIPTION\necho\.breaks +query +local +Does breaks\.\n/,
    );
    const { operations } = JSON.parse(some.stdout) as { operations: { id: string; inputSchema: object }[] };
    expect(operations.map(({ id }) => id)).toEqual(["echo.no", "echo.say"]);
    expect(operations[1]?.inputSchema).toMatchObject({ required: ["text"] });
    expect(found.stdout.trim().split("\n")).toHaveLength(2);
    expect([none.code, none.stdout.includes("echo.")]).toEqual([0, false]);
  });

  it("RE-30 lists sources", async () => {
    const { stdout } = await folder.run(["list", "--sources"]);
    expect(stdout).toMatch(/^local +up +local +5 .*echo\.mjs$/m);
  });

  it("RE-30 describes an operation with an example that works", async () => {
    const [{ stdout }, schemas] = await Promise.all([
      folder.run(["describe", "echo.say"]),
      folder.json<{ input: object }>(["describe", "echo.say", "--schema"]),
    ]);
    expect(stdout).toMatch(/text +string +yes/);
    expect(JSON.stringify(schemas)).toContain('"required":["text"]');
    const [, example = ""] = /\nExample\n {2}(.+)\n/.exec(stdout) ?? [];
    expect(await folder.shell(example)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{"text":/),
    });
  });
});

describe("call", () => {
  const place = { city: "Rome", zip: 184 };
  it.each<[string, readonly string[], object, string?]>([
    ["JSON", ['{"text":"hi","any":[1,null]}'], { text: "hi", any: [1, null] }],
    [
      "key=value, read by the schema",
      ["text=7", "count=7", "loud=true"],
      { text: "7", count: 7, loud: true },
    ],
    ["key:=json, whatever the schema", ["text=a", 'any:={"b":[true]}'], { text: "a", any: { b: [true] } }],
    ["@file", ["@whole.json"], { text: "from a file", count: 1 }],
    ["@file and members besides", ["@whole.json", "count=2"], { text: "from a file", count: 2 }],
    ["key=@file", ["text=@words.txt"], { text: "three\nshort lines\n" }],
    ["key=@@text", ["text=@@home"], { text: "@home" }],
    ["stdin by -", ["-"], { text: "by pipe" }, '{"text":"by pipe"}'],
    [
      "stdin by - and members besides",
      ["-", "loud=false"],
      { text: "by pipe", loud: false },
      '{"text":"by pipe"}',
    ],
    ["a pipe, where input is needed", [], { text: "unasked" }, '{"text":"unasked"}'],
    ["dotted keys", ["text=a", "to.city=Rome", "to.zip=184"], { text: "a", to: place }],
    ["repeated keys", ["text=a", "tags=x", "tags=y=z"], { text: "a", tags: ["x", "y=z"] }],
    [
      "JSON for lists and objects",
      ["text=", 'tags=["x"]', `to=${JSON.stringify(place)}`],
      { text: "", tags: ["x"], to: place },
    ],
    ["text that is no JSON of ours", ["text={a: [}"], { text: "{a: [}" }],
  ])("RE-30 takes input as %s", async (_, words, expected, stdin = "") => {
    const { code, stdout, stderr } = await folder.run(["call", "echo.say", ...words], { stdin });
    expect([stderr, code]).toEqual(["", 0]);
    expect(stdout).toBe(`${JSON.stringify(expected)}\n`);
  });

  it("RE-30 prints the whole envelope, text as text, and to a file", async () => {
    const [whole, raw, json, saved] = await Promise.all([
      folder.json(["call", "echo.say", "text=hi", "--envelope"]),
      folder.run(["call", "echo.text", "--raw"]),
      folder.run(["call", "echo.text", "--json"]),
      folder.run(["call", "echo.text", "-o", "out.txt"]),
    ]);
    expect(whole).toMatchObject({ data: { text: "hi" }, meta: { source: "local", operationId: "echo.say" } });
    expect([raw.stdout, json.stdout]).toEqual(["two\nlines\n", '"two\\nlines"\n']);
    expect([saved.stdout, folder.read("out.txt")]).toEqual(["", "two\nlines"]);
  });

  it.each<[string, readonly string[], number, string, RegExp]>([
    ["0 when it went well", ["echo.say", "text=a"], 0, '{"text":"a"}\n', /^$/],
    [
      "1 when the operation reported an error",
      ["echo.no"],
      1,
      '{"open":false}\n',
      /^waybill: tool error: CLOSED It is closed\.\n$/,
    ],
    ["2 when an input is no JSON", ["echo.say", "{"], 2, "", /^waybill: .+\n$/],
    ["2 when a flag is wrong", ["echo.say", "--envelop"], 2, "", /^waybill: .*--envelope/],
    ["3 when the input is refused", ["echo.say", "count=1"], 3, "", /VALIDATION_ERROR[\s\S]*text is missing/],
    [
      "3 when the operation broke",
      ["echo.breaks"],
      3,
      "",
      /^waybill: The operation failed unexpectedly\. \(EXECUTION_ERROR\)\n {2}--verbose shows what the handler threw\.\n$/,
    ],
    ["3 when time was up", ["echo.waits", "--timeout", "50ms"], 3, "", /\(TIMEOUT\)\n/],
  ])("RE-30 ends with %s", async (_, words, code, stdout, stderr) => {
    const ran = await folder.run(["call", ...words]);
    expect(ran).toEqual({ code, stdout, stderr: expect.stringMatching(stderr) });
    expect(ran.stderr).not.toMatch(/words of the inside|^ {4}at /m);
  });

  it("RE-30 tells programs about a failed call in one line of JSON", async () => {
    const { code, stdout, stderr } = await folder.run(["call", "echo.say", "count=1", "--json"]);
    expect([code, stdout]).toEqual([3, ""]);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "VALIDATION_ERROR" } });
  });

  it("RE-30 follows pages to their end, or to as many as were asked for", async () => {
    const place = useFolder();
    const pages = async (...words: string[]) => {
      const { stdout } = await place.run(["call", "parcel.list", "limit=1", "--all", ...words]);
      return stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).parcels[0].id);
    };
    expect(await pages()).toEqual(["P-1001", "P-1002", "P-1003"]);
    expect(await pages("--take", "2")).toEqual(["P-1001", "P-1002"]);
    await place.remove();
  });
});

describe("decode, encode and transcode", () => {
  it.each(FORMAT_NAMES)(
    "RE-30 writes a result as %s, which decodes and transcodes in a pipe",
    async (format) => {
      const written = `waybill call echo.say text=hi count=2 --format ${format}`;
      const [told, back, data] = await Promise.all([
        folder.shell(`${written} | waybill decode --json`),
        folder.shell(
          `${written} | waybill transcode --to status-envelope | waybill transcode --to ${format}`,
        ),
        folder.shell(`${written} | waybill transcode --to mcp | waybill decode --data`),
      ]);
      expect([told.code, told.stderr]).toEqual([0, ""]);
      expect(JSON.parse(told.stdout)).toMatchObject({ format, data: { text: "hi", count: 2 } });
      expect([back.code, data.code]).toEqual([0, 0]);
      expect(JSON.parse(data.stdout)).toEqual({ text: "hi", count: 2 });
      const again = await folder.json<object>([
        "decode",
        "--json",
        folder.write(`${format}.json`, back.stdout),
      ]);
      expect(again).toMatchObject({ format, data: { text: "hi", count: 2 } });
    },
  );

  it("RE-30 writes data and failures as tool results, and says what they are", async () => {
    const [ok, failed, people] = await Promise.all([
      folder.shell(
        `echo '{"hits":2}' | waybill encode --to status-envelope --summary "2 hits" | waybill decode --json`,
      ),
      folder.shell(
        `waybill encode --error NOT_FOUND --message "No such parcel." --to tiered-envelope | waybill decode --json`,
      ),
      folder.shell(`waybill encode '{"hits":2}' --to tool-envelope --tool search | waybill decode --losses`),
    ]);
    expect(JSON.parse(ok.stdout)).toMatchObject({
      format: "status-envelope",
      data: { hits: 2 },
      text: "✅ 2 hits",
    });
    expect(JSON.parse(failed.stdout)).toMatchObject({
      format: "tiered-envelope",
      error: { code: "NOT_FOUND" },
    });
    expect(people.stdout).toMatch(/^format +tool-envelope[\s\S]*"hits": 2/);
    expect([ok.code, failed.code, people.code]).toEqual([0, 0, 0]);
  });

  it("RE-30 ends with 2 for what is no tool result", async () => {
    const { code, stdout, stderr } = await folder.run(["decode"], { stdin: "hello" });
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(/^waybill: .+\n$/)]);
  });
});
