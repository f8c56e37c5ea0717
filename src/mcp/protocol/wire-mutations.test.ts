import { readdirSync, readFileSync } from "node:fs";
import { classifyInboundRequest, parseJSONRPCMessage } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { createLineReader, createRpcReader, readRpcLine } from "../channels/rpc-lines.ts";
import { classify } from "../server/http/mcp-endpoint.ts";
import { toRpcMessage } from "./messages.ts";
import { type RequestEnd, RpcPeer } from "./peer.ts";

const FOLDER = new URL("../../../test/data/recorded-servers/", import.meta.url);
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
};

/** Messages of every kind: what recorded servers answered, and what clients of both eras ask. */
const MESSAGES: readonly object[] = [
  ...readdirSync(FOLDER).flatMap((file) => recorded(JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")))),
  {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 3, reason: "late" } },
  {
    jsonrpc: "2.0",
    id: "a",
    method: "tools/call",
    params: { name: "echo", arguments: { text: "x" }, _meta: { progressToken: 1 } },
  },
  { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "echo", arguments: {}, _meta: META } },
  { jsonrpc: "2.0", id: 3, method: "resources/read", params: { uri: "x://a", _meta: META } },
  { jsonrpc: "2.0", id: 4, method: "server/discover", params: { _meta: META } },
  { jsonrpc: "2.0", id: 5, error: { code: -32601, message: "Method not found", data: { more: true } } },
];

/** At most twenty answers of one recorded server: its texts are long, and much alike. */
function recorded(file: unknown): readonly object[] {
  const found: object[] = [];
  const visit = (value: unknown): void => {
    if (found.length >= 20 || typeof value !== "object" || value === null) return;
    if (Array.isArray((value as { content?: unknown }).content))
      found.push({ jsonrpc: "2.0", id: found.length, result: value });
    else for (const member of Object.values(value)) visit(member);
  };
  visit(file);
  return found;
}

const ODD = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    "",
    "x",
    0,
    -1,
    1.5,
    2 ** 60,
    [],
    {},
    "2.0",
    "1999-01-01",
    "2026-07-28",
    "2027-01-01",
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

/** One change anywhere in a message: a member replaced, left out, added or moved. */
function mutated(message: object): fc.Arbitrary<unknown> {
  const places = placesOf(message, []).slice(0, 400);
  return fc
    .tuple(fc.constantFrom(...places), fc.constantFrom("replace", "remove", "add", "rename"), ODD)
    .map(([path, how, odd]) => {
      const copy = structuredClone(message) as Record<string, unknown>;
      const parent = path
        .slice(0, -1)
        .reduce<Record<string, unknown>>((at, key) => at[key] as Record<string, unknown>, copy);
      const key = path.at(-1) as string;
      const value = parent[key];
      if (how === "replace") parent[key] = odd;
      if (how === "remove" || how === "rename") delete parent[key];
      if (how === "rename") parent[`${key}x`] = value;
      if (how === "add") parent["extra"] = odd;
      return copy;
    });
}

function placesOf(value: unknown, path: readonly string[]): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null || path.length > 4) return [];
  return Object.keys(value).flatMap((key) => [
    [...path, key],
    ...placesOf((value as Record<string, unknown>)[key], [...path, key]),
  ]);
}

const ANY = fc
  .constantFrom(...MESSAGES)
  .chain((message) => fc.oneof(fc.constant(message as unknown), mutated(message)));

/**
 * Where the SDK reads a message otherwise, and why we do not: it looks into `params._meta` and results for what MCP says of them, which is
 * looked at here where it is used, so that a request is answered with what is wrong.
 */
function isExplained(value: unknown): boolean {
  const { params, result, id, error } = (value ?? {}) as Record<string, unknown>;
  const meta =
    (params as { _meta?: unknown } | undefined)?._meta ?? (result as { _meta?: unknown } | undefined)?._meta;
  if (meta !== undefined || (typeof params === "object" && params !== null && "_meta" in params)) return true;
  // An answer with a member too many is still the answer that somebody waits for.
  if (result !== undefined && Object.keys(value as object).length > 3) return true;
  // JSON-RPC has ids that are whole numbers; the SDK takes an error without an id, or with `null`, for a message too, and so do we.
  return error !== undefined || (typeof id === "number" && !Number.isSafeInteger(id));
}

describe("messages, changed at random", () => {
  it("Mcp: are messages where the SDK says so, apart from what is written down", () => {
    fc.assert(
      fc.property(ANY, (value) => {
        const ours = toRpcMessage(value);
        if (ours !== undefined) expect(ours).toBe(value);
        const theirs = isMessage(value);
        if ((ours !== undefined) !== theirs && !isExplained(value)) {
          throw new Error(
            `ours ${ours !== undefined}, theirs ${theirs}: ${JSON.stringify(value).slice(0, 500)}`,
          );
        }
      }),
      runs(100_000),
    );
  });

  it("Mcp: are the same messages however their bytes are cut", () => {
    const chunks = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(ANY, { minLength: 1, maxLength: 4 }), chunks, (values, sizes) => {
        const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
        const found: unknown[] = [];
        const reader = createLineReader({
          lineBytes: 10_000_000,
          onLine: (line) => found.push(...readRpcLine(line).messages),
          onLong: () => {},
          onLongEnd: () => {},
        });
        for (let at = 0, n = 0; at < bytes.length; n++) {
          const size = (sizes[n % sizes.length] as number) ** 2;
          reader.push(bytes.subarray(at, at + size));
          at += size;
        }
        const messages = values.filter((value) => (value as { jsonrpc?: unknown })?.jsonrpc === "2.0");
        expect(found).toEqual(messages.map((message) => JSON.parse(JSON.stringify(message))));
      }),
      runs(5_000),
    );
  });

  it("Mcp: belong to the same era as for the SDK, with whatever headers", () => {
    const header = fc.option(
      fc.constantFrom("2026-07-28", "2025-06-18", "2027-01-01", "tools/call", "echo", "x", ""),
      { nil: undefined },
    );
    fc.assert(
      fc.property(ANY, header, header, header, (body, version, method, name) => {
        const fields: Record<string, string | undefined> = {
          "mcp-protocol-version": version,
          "mcp-method": method,
          "mcp-name": name,
        };
        const ours = classify(body, { header: (field) => fields[field] });
        if (toRpcMessage(body) === undefined || !isMessage(body)) return;
        const theirs = classifyInboundRequest({
          httpMethod: "POST",
          body,
          ...(version !== undefined && { protocolVersionHeader: version }),
          ...(method !== undefined && { mcpMethodHeader: method }),
          ...(name !== undefined && { mcpNameHeader: name }),
        });
        if (theirs.kind === "legacy") expect(ours.kind).toBe("legacy");
        if (theirs.kind === "reject") {
          // Details of what a client can do or is called are looked at where they are used.
          const isDetail = /client(Capabilities|Info)\./.test(theirs.message);
          if (isDetail) expect(["modern", "refused"]).toContain(ours.kind);
          else expect(ours).toMatchObject({ kind: "refused", error: { code: theirs.code } });
        }
        // What the SDK looks at in later steps is refused here in one.
        if (theirs.kind === "modern") expect(["modern", "notification", "refused"]).toContain(ours.kind);
      }),
      runs(20_000),
    );
  });
});

/** What servers send besides answers. */
const TOLD: readonly object[] = [
  { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 0, progress: 1, total: 2 } },
  { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } },
  { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "q" } },
  { jsonrpc: "2.0", id: "q", method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } },
  { jsonrpc: "2.0", id: "r", method: "roots/list" },
];
const SENT = fc
  .constantFrom(...MESSAGES, ...TOLD)
  .chain((message) => fc.oneof(fc.constant(message as unknown), mutated(message)));

/** Reads bytes as a client over stdio does, in pieces of these sizes, with as many requests under way. */
function readAsClient(bytes: Buffer, sizes: readonly number[], requests: number) {
  const ends: RequestEnd[][] = [];
  const told: unknown[] = [];
  const asked: unknown[] = [];
  const noted: unknown[] = [];
  let cancelled = 0;
  const peer = new RpcPeer({
    answer: async (request) => {
      asked.push(request.id);
      return "{}";
    },
    toError: () => ({ code: -32603, message: "" }),
    send: () => {},
    onNotification: (notification) => told.push(notification),
    onCancel: () => {
      cancelled += 1;
    },
    onFault: (message) => noted.push(message),
    onLateAnswer: (id) => noted.push(id),
    onLateProgress: (id) => noted.push(id),
  });
  let progress = 0;
  for (let n = 0; n < requests; n++) {
    const own: RequestEnd[] = [];
    ends.push(own);
    peer.request("tools/call", {}, { onEnd: (end) => own.push(end), onProgress: () => progress++ });
  }
  const messages: unknown[] = [];
  const reader = createRpcReader({
    lineBytes: 10_000_000,
    onMessage: (message) => {
      messages.push(message);
      peer.receive(message);
    },
    onOddity: (message) => noted.push(message),
  });
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = (sizes[n % sizes.length] as number) ** 2;
    reader.push(bytes.subarray(at, at + size));
    at += size;
  }
  reader.end();
  return { peer, ends, messages, seen: { told, asked, noted, progress, cancelled } };
}

describe("what a server sends, changed at random", () => {
  it("Mcp: settles every request once, and nothing is lost without a word, however its bytes are cut", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(SENT, { minLength: 1, maxLength: 6 }), sizes, (values, cuts) => {
        const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
        const { peer, ends, messages, seen } = readAsClient(bytes, cuts, 4);
        // Each result is handed on as it was sent, unless another answer had come under its id.
        const results = ends.flat().flatMap((end) => (end.kind === "result" ? [end.result] : []));
        const sent = messages.map((message) => (message as { result?: unknown }).result);
        for (const result of results) expect(sent).toContain(result);
        const answered = ends.flat().length;
        const { told, asked, noted, progress, cancelled } = seen;
        const heard = answered + told.length + asked.length + noted.length + progress + cancelled;
        const silent = messages.filter(isSilent).length;
        expect(heard + silent).toBeGreaterThanOrEqual(messages.length);
        peer.close();
        expect(ends.map((own) => own.length)).toEqual([1, 1, 1, 1]);
        expect(readAsClient(bytes, [1_000], 4).seen).toEqual(seen);
      }),
      runs(20_000),
    );
  });
});

/** Progress of nothing that was asked for is no news, and a second request under one id is refused. */
function isSilent(message: unknown): boolean {
  const { method, id } = message as { method?: unknown; id?: unknown };
  return method === "notifications/progress" || (typeof method === "string" && id !== undefined);
}

function isMessage(value: unknown): boolean {
  try {
    parseJSONRPCMessage(value);
    return true;
  } catch {
    return false;
  }
}
