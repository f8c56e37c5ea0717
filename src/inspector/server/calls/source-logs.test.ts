import { describe, expect, it } from "vitest";
import type { WireEvent } from "../../../mcp/channels/channel.ts";
import { KEPT_LINE_CHARACTERS, KEPT_LOG_SOURCES } from "../inspector-limits.ts";
import { SourceLogs } from "./source-logs.ts";

const stderr = (line: string): WireEvent => ({ type: "stderr", line });
const same = (text: string): string => text;
const SCHEMA = { type: "object", properties: { password: { type: "string", format: "password" } } };

const calling = (id: number, input: object, inputSchema?: object): WireEvent => {
  const params = { name: "add", arguments: input };
  const request = {
    id,
    method: "tools/call",
    params,
    inputSchema,
    call: { requestId: `r${id}` },
    signal: undefined,
  };
  return {
    type: "sent",
    text: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }),
    request,
  } as WireEvent;
};

function logged(events: readonly WireEvent[], options = {}) {
  const logs = new SourceLogs(options);
  for (const [at, event] of events.entries()) logs.take({ source: "notes", at, event, mask: same });
  return logs;
}

describe("logs of sources", () => {
  it("hold as many lines of a source as they are told, and forget the oldest with what they hold", () => {
    const lines = ["one", "two", "three"].map(stderr);
    const values = (logs: SourceLogs) => logs.linesOf("notes").map((line) => "value" in line && line.value);
    expect(values(logged(lines, { linesEach: 3 }))).toEqual(["one", "two", "three"]);
    const short = logged(lines, { linesEach: 2 });
    expect(values(short)).toEqual(["two", "three"]);
    expect(short.characters).toBe(JSON.stringify("two").length + JSON.stringify("three").length);
    expect(short.linesOf("notes", 2).map(({ n }) => n)).toEqual([3]);
  });

  it("hold as many characters as they are told, and say what they have forgotten", () => {
    const logs = logged([stderr("x".repeat(8)), stderr("y".repeat(8))], { characters: 10 });
    expect(logs.linesOf("notes")).toMatchObject([{ omitted: "forgotten" }, { value: "yyyyyyyy" }]);
  });

  it("keep nothing of a line that is too long, so that no half of a secret is left", () => {
    const most = KEPT_LINE_CHARACTERS - 2;
    const logs = logged([stderr("x".repeat(most)), stderr("x".repeat(most + 1))]);
    expect(logs.linesOf("notes")).toMatchObject([{ value: "x".repeat(most) }, { omitted: "too-long" }]);
  });

  it("hold lines of as many sources as they are told", () => {
    const logs = new SourceLogs();
    for (let at = 0; at <= KEPT_LOG_SOURCES; at += 1)
      logs.take({ source: `s${at}`, at, event: stderr("line"), mask: same });
    expect(logs.linesOf("s0")).toEqual([]);
    expect(logs.linesOf("s1")).toHaveLength(1);
    expect(logs.characters).toBe(KEPT_LOG_SOURCES * JSON.stringify("line").length);
    logs.close();
    expect(logs.characters).toBe(0);
  });

  it("keep no password, and no argument of a tool whose schema is not known", () => {
    const input = { text: "hello", password: "hunter2hunter2" };
    const lines = logged([calling(1, input, SCHEMA), calling(2, input)]).linesOf("notes");
    const given = lines.map((line) =>
      "value" in line ? (line.value as { params: { arguments: unknown } }).params : {},
    );
    expect(given).toEqual([
      { name: "add", arguments: { text: "hello", password: "•••" } },
      { name: "add", arguments: "•••" },
    ]);
  });

  it("keep no secret of the source", () => {
    const logs = new SourceLogs();
    const mask = (text: string): string => text.replaceAll("s3cret", "***");
    logs.take({ source: "notes", at: 1, event: stderr("key s3cret"), mask });
    logs.take({
      source: "notes",
      at: 2,
      event: { type: "received", message: { params: { s3cret: ["s3cret"] } } },
      mask,
    });
    expect(logs.linesOf("notes")).toMatchObject([
      { value: "key ***" },
      { value: { params: { "***": ["***"] } } },
    ]);
  });

  it("know which messages are of a request: itself, its progress and its answer", () => {
    const received = (message: object): WireEvent => ({
      type: "received",
      message: { jsonrpc: "2.0", ...message },
    });
    const progress = (progressToken: number) =>
      received({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    const logs = logged([
      calling(1, {}, SCHEMA),
      calling(2, {}, SCHEMA),
      progress(1),
      progress(2),
      received({ id: 2, result: {} }),
      received({ id: 1, result: {} }),
      // An answer that comes twice is of nobody.
      received({ id: 1, result: {} }),
    ]);
    const methods = (requestId: string) =>
      logs.messagesOf("notes", requestId).map(({ type, method }) => [type, method]);
    const expected = [
      ["sent", "tools/call"],
      ["received", "notifications/progress"],
      ["received", "tools/call"],
    ];
    expect(methods("r1")).toEqual(expected);
    expect(methods("r2")).toEqual(expected);
    expect(logs.messagesOf("others", "r1")).toEqual([]);
  });

  it.each([
    null,
    1,
    "text",
    [],
    [[]],
    { method: 7 },
    { id: {}, params: [] },
    { params: { progressToken: "x" } },
  ])("take whatever a server sends: %j", (message) => {
    const logs = logged([{ type: "received", message }]);
    expect(logs.linesOf("notes")).toMatchObject([{ type: "received", value: message }]);
  });
});
