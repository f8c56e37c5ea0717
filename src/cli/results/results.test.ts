import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CARRIERS } from "../../../test/arbitrary-result.ts";
import { runResults as run } from "../../../test/run-results.ts";
import { seededRuns } from "../../../test/runs.ts";
import { envelope, STATUS, TIERED, text } from "../../../test/sample-results.ts";
import { isPlainJson } from "../../core/json/json-value.ts";
import { decodeToolResult, FORMAT_NAMES, transcode } from "../../formats/index.ts";

const json = (value: unknown): string => JSON.stringify(value);
const decode = async (stdin: string, ...flags: string[]) => {
  const ran = await run(["decode", "--json", ...flags], stdin);
  expect(ran.err).toBe("");
  return ran.out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
};

const PLAIN = { content: [text("no such table")], isError: true };
const ENVELOPE = envelope({ hits: 2 });
const BLOCK = (ENVELOPE.content[1] as { text: string }).text;

describe("waybill decode", () => {
  it.each([
    ["a tool result", json(ENVELOPE), "tool-envelope", "none", { hits: 2 }],
    [
      "a JSON-RPC response",
      json({ jsonrpc: "2.0", id: 1, result: ENVELOPE }),
      "tool-envelope",
      "json-rpc",
      { hits: 2 },
    ],
    ["an envelope block alone", BLOCK, "tool-envelope", "envelope-line", { hits: 2 }],
    ["an envelope block as a JSON string", json(BLOCK), "tool-envelope", "envelope-line", { hits: 2 }],
    ["text blocks copied one below the other", `## Done\n\n${BLOCK}`, "tool-envelope", "text", { hits: 2 }],
    ["a tiered envelope alone", json(TIERED), "tiered-envelope", "bare-envelope", { risk: 1 }],
    ["a status envelope alone", json(STATUS), "status-envelope", "bare-envelope", { hits: 1 }],
    [
      "a response envelope",
      json(transcode(ENVELOPE, "response-envelope")),
      "response-envelope",
      "none",
      { hits: 2 },
    ],
    ["a content block", json(text("hello")), "mcp", "content-block", [text("hello")]],
    ["a list of content blocks", json([text("a"), text("b")]), "mcp", "content-list", [text("a"), text("b")]],
  ])("X-2 reads %s", async (_, stdin, format, wrapping, data) => {
    const [report, ...more] = await decode(stdin);
    expect(more).toEqual([]);
    expect(report).toMatchObject({ format, wrapping, data });
  });

  it("X-2 reads one result in each line, and says in which", async () => {
    const reports = await decode(`${json(ENVELOPE)}\n\n${json(PLAIN)}\n`);
    expect(reports.map(({ line, isError }) => [line, isError])).toEqual([
      [1, false],
      [3, true],
    ]);
  });

  it("X-2 tells people the format, the outcome and the data", async () => {
    const { code, out } = await run(["decode"], json(PLAIN));
    expect(code).toBe(0);
    expect(out).toMatch(/^format {6}mcp \(MCP's own result\)\noutcome {5}tool error no such table/);
    expect(out).toContain("data\n  [");
  });

  it("X-2 tells a JSON-RPC error from a result", async () => {
    const [report] = await decode(
      json({ jsonrpc: "2.0", id: 1, error: { code: -32602, message: "no such tool" } }),
    );
    expect(report).toMatchObject({
      format: "json-rpc-error",
      error: { code: "-32602", message: "no such tool" },
    });
  });

  it("X-2 finds what hides, and lets none of it out", async () => {
    const hostile = {
      content: [text("fine\u001b]0;title\u0007\u202e")],
      structuredContent: { a: "\u200b\u009b31m" },
    };
    const [report] = await decode(json(hostile));
    expect(report.odd.map(({ code }: { code: string }) => code)).toEqual([
      "hidden_in_text",
      "hidden_in_data",
    ]);
    for (const flags of [[], ["--json"], ["--data"]]) {
      const { out } = await run(["decode", ...flags], json(hostile));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
      expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u202e]/);
    }
  });

  it("X-2 prints the data alone, the losses, and exits with 1 for what is odd only when asked", async () => {
    expect(await run(["decode", "--data"], json(ENVELOPE))).toEqual({
      code: 0,
      out: '{"hits":2}\n',
      err: "",
    });
    expect((await run(["decode", "--losses"], json(ENVELOPE))).out).toMatch(
      /lost as status-envelope +\/status/,
    );
    const odd = json({ content: [text("Error: broken")] });
    expect((await run(["decode"], odd)).code).toBe(0);
    expect((await run(["decode", "--strict"], odd)).code).toBe(1);
    expect((await run(["decode", "--strict"], json(ENVELOPE))).code).toBe(0);
    const ambiguous = json({ ...ENVELOPE, structuredContent: { other: 1 } });
    expect((await run(["decode", "--data"], ambiguous)).code).toBe(1);
    expect((await run(["decode"], ambiguous)).out).toContain("as tool-envelope");
  });

  it.each([
    ["nothing", "", "is empty"],
    ["broken JSON", '{\n  "content": [}', "line 2, column 15"],
    ["JSON that ends too early", '{"content":[', "ends too early"],
    ["HTML", "<!doctype html><p>502", "looks like HTML"],
    ["a stream of events without data", "event: message\nid: 1", "looks like a stream of events"],
    ["a stream of events without a result", "event: message\ndata: hello", "without a tool result"],
    ["a fixture without a result", '{"waybill":"fixture/1","outcome":"ok"}', "nothing came back"],
    ["base64 without its prefix", "eyJwYXlsb2FkIjp7ImhpdHMiOjJ9fQ==", "looks like base64"],
    ["a number", "42", "holds a number"],
    ["an object of another kind", '{"hits":2}', "an object with hits"],
    ["an unknown envelope", '{"data":1,"meta":{}}', "of no known format"],
    ["another JSON-RPC answer", '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}', "it holds tools"],
    ["a bad second line", `${json(PLAIN)}\n{"a":`, "Line 2 of the input on stdin"],
    ["nesting without end", "[".repeat(5_000), "The input on stdin"],
  ])("X-2 refuses %s with one message and exit code 2", async (_, stdin, message) => {
    const { code, out, err } = await run(["decode"], stdin);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
    expect(err.trimEnd().split("\n")).toHaveLength(1);
  });

  it("X-2 never waits for a terminal, and names a missing file", async () => {
    expect(await run(["decode"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("There is nothing to read"),
    });
    expect(await run(["decode", "gone.json"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("does not exist"),
    });
  });

  it("X-2 answers any text with a report or one message", async () => {
    const mutated = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json(),
      fc
        .constantFrom(json(ENVELOPE), BLOCK, json(TIERED))
        .chain((given) =>
          fc
            .tuple(fc.nat(given.length), fc.nat(20))
            .map(([at, length]) => given.slice(0, at) + given.slice(at + length)),
        ),
    );
    await fc.assert(
      fc.asyncProperty(mutated, async (stdin) => {
        const { code, out, err } = await run(["decode"], stdin);
        expect(code === 0 ? out : err).not.toBe("");
        expect([0, 2]).toContain(code);
      }),
      seededRuns(150),
    );
  });
});

describe("waybill encode and transcode", () => {
  it("X-3 pipe into each other and into decode without a change to the data, for all pairs of formats", async () => {
    const data = fc.jsonValue({ maxDepth: 3 });
    for (const first of FORMAT_NAMES) {
      for (const second of FORMAT_NAMES) {
        await fc.assert(
          fc.asyncProperty(data, async (value) => {
            const flags = ["--to", first, "--tool", "search", "--summary", "Done"];
            const encoded = await run(["encode", ...flags], json(value));
            const written = await run(["transcode", "--to", second], encoded.out);
            const { out, code } = await run(["decode", "--data"], written.out);
            expect(code).toBe(0);
            expect(JSON.parse(out)).toEqual(JSON.parse(json(value)));
          }),
          seededRuns(8),
        );
      }
    }
  });

  it("X-3 transcode there and back gives the same data", async () => {
    let tried = 0;
    for (const format of FORMAT_NAMES) {
      for (const other of FORMAT_NAMES) {
        await fc.assert(
          fc.asyncProperty(CARRIERS[format], async (carrier) => {
            // What is ambiguous by itself, or holds more than JSON does, is not what a pipe carries.
            if (!isPlainJson(carrier)) return;
            const given: unknown = JSON.parse(json(carrier));
            if (decodeOrNone(given)?.format !== format) return;
            tried += 1;
            const there = await run(["transcode", "--to", other], json(given));
            const back = await run(["transcode", "--to", format], there.out);
            expect(decodeToolResult(JSON.parse(back.out)).data).toEqual(decodeToolResult(given).data);
          }),
          seededRuns(6),
        );
      }
    }
    expect(tried).toBeGreaterThan(100);
  });

  it("X-3 write a failure, with what is known of it", async () => {
    const { out } = await run([
      "encode",
      "--to",
      "tiered-envelope",
      "--error",
      "NOT_FOUND",
      "--message",
      "No such parcel.",
    ]);
    const [report] = await decode(out);
    expect(report).toMatchObject({
      format: "tiered-envelope",
      isError: true,
      error: { message: "No such parcel." },
    });
  });

  it("X-3 take JSON from the command line or from a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-encode-"));
    await writeFile(join(folder, "data.json"), '{"hits":3}');
    const fromFile = await run(["encode", "data.json"], undefined, folder);
    expect(JSON.parse(fromFile.out).structuredContent).toEqual({ hits: 3 });
    expect(JSON.parse((await run(["encode", '{"hits":2}'])).out).structuredContent).toEqual({ hits: 2 });
    expect(await run(["encode", '{"hits":'])).toMatchObject({
      code: 2,
      err: expect.stringContaining("ends too early"),
    });
  });

  it("X-3 say on stderr what a format has no place for, and keep it unless told not to", async () => {
    const kept = await run(["transcode", "--to", "status-envelope"], json(ENVELOPE));
    expect(kept.err).toMatch(/comes back: .*\/tool/);
    expect(kept.out).toContain("dev.waybill/result");
    const gone = await run(["transcode", "--to", "status-envelope", "--no-residual"], json(ENVELOPE));
    expect(gone.err).toMatch(/is gone or made up: .*\/tool/);
    expect(gone.out).not.toContain("dev.waybill/result");
  });

  it.each([
    [["transcode", "--to", "status-envelop"], 'did you mean "status-envelope"?'],
    [["encode", "1", "--to", "xml"], "there are tool-envelope, tiered-envelope"],
    [["encode", "1", "--message", "x"], "--message goes with --error"],
    [["encode", "1", "--tier", "gold"], "--tier takes one of community"],
    [["encode", "1", "--timestamp", "soon"], "--timestamp takes a time"],
    [["encode"], "There is nothing to read"],
  ])("X-3 refuse %j", async (args, message) => {
    expect(await run(args)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(message) });
  });
});

function decodeOrNone(value: unknown) {
  try {
    return decodeToolResult(value);
  } catch {
    return undefined;
  }
}
