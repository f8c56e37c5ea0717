import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { text } from "../../../test/sample-results.ts";
import { MAX_JSON_DEPTH } from "../../core/json/json-value.ts";
import { type ResultReport, reportResult } from "./describe-result.ts";
import { findResults } from "./find-results.ts";
import { ResultTextError } from "./found-result.ts";

const WHAT = "The text";
const result = (said: string) => ({ content: [text(said)] });
const answer = (id: number, said: string) => JSON.stringify({ jsonrpc: "2.0", id, result: result(said) });
const PROGRESS = JSON.stringify({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { progress: 1 },
});

function reportsOf(given: string): readonly ResultReport[] {
  return findResults(given, WHAT).map((found) => reportResult(found, WHAT, {}));
}

function refusalOf(given: string): string {
  try {
    reportsOf(given);
  } catch (thrown) {
    if (thrown instanceof ResultTextError) return thrown.message;
    throw thrown;
  }
  throw new Error("It was read.");
}

describe("a stream of events", () => {
  it.each([
    ["as servers write it", `event: message\nid: 1\ndata: ${answer(1, "a")}\n\n`],
    ["with a comment first", `: ping\n\ndata: ${answer(1, "a")}\n\n`],
    ["without a space after the colon", `data:${answer(1, "a")}`],
    ["with other line ends", `event: message\r\ndata: ${answer(1, "a")}\r\n\r\n`],
    ["with the oldest line ends", `event: message\rdata: ${answer(1, "a")}\r\r`],
    [
      "with data in several lines",
      `data: ${JSON.stringify(JSON.parse(answer(1, "a")), null, 1).replaceAll("\n", "\ndata: ")}`,
    ],
    ["with an empty event first", `id: 0\ndata:\n\ndata: ${answer(1, "a")}\n\n`],
    ["with a mark first", `\uFEFFdata: ${answer(1, "a")}`],
    ["of one result without JSON-RPC", `data: ${JSON.stringify(result("a"))}`],
    ["of a batch", `data: [${PROGRESS},${answer(1, "a")}]`],
  ])("is read %s", (_, given) => {
    expect(reportsOf(given)).toMatchObject([{ format: "mcp", wrapping: "event-stream", text: "a", odd: [] }]);
  });

  it("gives the last of several results, and says how many answers there are and what is left out", () => {
    const handshake = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}';
    const lines = [answer(1, "a"), PROGRESS, answer(2, "b"), "[DONE]", handshake];
    const [report, ...more] = reportsOf(lines.map((line) => `data: ${line}\n\n`).join(""));
    expect(more).toEqual([]);
    expect(report?.text).toBe("b");
    expect(report?.notes).toEqual([
      "Taken out of a stream of events with 3 answers: this is the last result, in line 5.",
      "Left out of it: 1 other message.",
      "1 event in it cannot be read as JSON, the first in line 7.",
      "Taken out of the JSON-RPC answer to request 2.",
    ]);
  });

  it("is read from the lines of its data alone, as a search in it gives them", () => {
    const [report] = reportsOf(`data: ${answer(1, "a")}\ndata: ${PROGRESS}\ndata: ${answer(2, "b")}`);
    expect(report).toMatchObject({
      text: "b",
      notes: [expect.stringContaining("2 answers"), expect.any(String), expect.any(String)],
    });
  });

  it("tells an error that is answered", () => {
    const error = { code: -32_602, message: "No such tool.", data: { tool: "x" } };
    const [report] = reportsOf(`data: ${JSON.stringify({ jsonrpc: "2.0", id: 3, error })}\n\n`);
    expect(report).toMatchObject({
      format: "json-rpc-error",
      wrapping: "event-stream",
      error: { code: "-32602", message: "No such tool.", details: { tool: "x" } },
    });
  });

  it.each([
    ["only notices", `data: ${PROGRESS}\n\n`, "none of its 1 messages is an answer"],
    ["data that is cut", `data: ${answer(1, "a").slice(0, -5)}`, "line 1 is no JSON"],
    ["data that is none", "event: x\ndata: hello\n\n", "line 2 is no JSON"],
    ["no data at all", "data:\n\ndata: \n\n", "none of its 0 messages"],
    [
      "another answer",
      'data: {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
      "its result is no tool result",
    ],
    ["the name of a prototype", 'data: {"__proto__":{"content":[]}}', "an object with __proto__"],
    [
      "JSON that is nested too deeply",
      `data: ${"[".repeat(MAX_JSON_DEPTH + 1)}${"]".repeat(MAX_JSON_DEPTH + 1)}`,
      "line 1 is no JSON",
    ],
  ])("is refused with one sentence where it holds %s", (_, given, message) => {
    expect(refusalOf(given)).toContain(message);
  });

  it("is read in time that grows with its length, however it is cut up", () => {
    const startedAt = cpuMs();
    const many = `data: ${answer(1, "a")}\n\n`.repeat(10_000);
    expect(reportsOf(many)[0]?.notes?.[0]).toContain("10000 answers");
    expect(refusalOf("data:\n".repeat(200_000))).toContain("none of its 0 messages");
    expect(refusalOf("data: x\n".repeat(200_000))).toContain("line 1 is no JSON");
    expect(refusalOf("data: 1\n\n".repeat(200_000))).toContain("none of its 200000 messages");
    expect(refusalOf(`data: [${"1,".repeat(300_000)}1]`)).toContain("none of its 300001 messages");
    const other = 'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n';
    expect(refusalOf(other.repeat(20_000))).toContain("its result is no tool result");
    expect(cpuMs() - startedAt).toBeLessThan(20_000);
  });
});

describe("a problem of an HTTP API", () => {
  it("is an error with its members", () => {
    const problem = {
      type: "https://x.test/gone",
      title: "Gone",
      status: 410,
      detail: "P-9 left.",
      parcel: "P-9",
    };
    expect(reportsOf(JSON.stringify(problem))).toEqual([
      {
        format: "problem",
        wrapping: "none",
        isError: true,
        error: { code: "410", message: "Gone: P-9 left." },
        data: problem,
        obtained: "body",
        text: "Gone: P-9 left.",
        odd: [],
      },
    ]);
  });

  it.each([
    ["with a code of its own", { title: "No", status: 404, code: "NOT_FOUND" }, "NOT_FOUND", "No"],
    ["without words", { type: "about:blank", status: 500 }, "500", "The server gave no reason."],
    ["without a status", { type: "about:blank", title: "No" }, undefined, "No"],
    ["that says the same twice", { title: "No", detail: "No", status: 400 }, "400", "No"],
    ["with members of the wrong kind", { title: ["x"], detail: "No", status: 599 }, "599", "No"],
  ])("is told %s", (_, problem, code, message) => {
    const [report] = reportsOf(JSON.stringify(problem));
    expect(report).toMatchObject({ format: "problem", error: { message } });
    expect(report?.error?.code).toBe(code);
  });

  it.each([
    ["a status of success", { title: "Fine", status: 200 }],
    ["a status that is none", { title: "Fine", status: 600 }],
    ["a status that is a word", { title: "Buy milk", status: "open" }],
    ["a type that is no address", { type: "book", title: "Moby-Dick" }],
    ["a status alone", { status: 404 }],
  ])("is not seen in %s", (_, value) => {
    expect(refusalOf(JSON.stringify(value))).toContain("that is no tool result");
  });

  it("shows what hides in its words", () => {
    const [report] = reportsOf(JSON.stringify({ title: "No\u202e", status: 404 }));
    expect(report?.odd.map(({ code }) => code)).toEqual(["hidden_in_text", "hidden_in_data"]);
  });
});
