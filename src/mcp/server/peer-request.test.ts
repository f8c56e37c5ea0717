import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { call, errorOf, initialize, modern, post } from "../../../test/mcp-requests.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createMcpHandler, type McpHandler, type McpRequestInfo } from "./http/mcp-endpoint.ts";
import type { McpHandlerOptions } from "./http/serve-mcp-http.ts";
import { isHeard, metadataOf, RequestReporter } from "./peer-request.ts";
import { toMcpServer } from "./to-mcp-server.ts";

const whoami = query("a.whoami", (_, { identity }) => ({ who: identity?.subject ?? "nobody" }));
const server = toMcpServer(new OperationRegistry([whoami]), { identity: { subject: "process" } });

const said = async (response: Response): Promise<string | undefined> =>
  /"who":"(\w+)"/.exec(await response.text())?.[1];

async function askModern(handler: McpHandler, info?: McpRequestInfo): Promise<string | undefined> {
  return await said(await handler.fetch(modern("tools/call", { name: "a_whoami", arguments: {} }), info));
}

async function askLegacy(handler: McpHandler): Promise<string | undefined> {
  const session = { "mcp-session-id": await initialize(handler) };
  return await said(await handler.fetch(post(call(2, "a_whoami"), session)));
}

async function askBoth(options: McpHandlerOptions): Promise<readonly (string | undefined)[]> {
  const handler = createMcpHandler(server, options);
  const answers = [await askModern(handler), await askLegacy(handler)];
  await handler.close();
  return answers;
}

describe("a session", () => {
  it("X-6 says what is missing in an initialize, whether it is the first or not", async () => {
    const handler = createMcpHandler(server);
    const session = { "mcp-session-id": await initialize(handler) };
    for (const headers of [{}, session]) {
      for (const params of [undefined, {}, { protocolVersion: "2025-06-18" }]) {
        const bad = post({ jsonrpc: "2.0", id: 9, method: "initialize", params }, headers);
        expect(await errorOf(await handler.fetch(bad))).toEqual({ status: 400, code: -32_602, id: 9 });
      }
    }
    await handler.close();
  });
});

describe("the identity of the server's options", () => {
  it("X-4 is never that of a caller whom `authenticate` found to be anonymous", async () => {
    expect(await askBoth({ authenticate: () => undefined })).toEqual(["nobody", "nobody"]);
    expect(await askBoth({ authenticate: () => ({ subject: "ann" }) })).toEqual(["ann", "ann"]);
  });

  it("X-4 is never that of a caller about whom the host says that there is no identity", async () => {
    const handler = createMcpHandler(server);
    expect(await askModern(handler, { identity: undefined })).toBe("nobody");
    const authenticated = createMcpHandler(server, { authenticate: () => ({ subject: "ann" }) });
    expect(await askModern(authenticated, { identity: undefined })).toBe("ann");
  });

  it("X-4 is that of a caller over a transport that does not say, as HTTP without authentication", async () => {
    expect(await askBoth({})).toEqual(["process", "process"]);
  });
});

type Sent = { readonly method: string; readonly params: Readonly<Record<string, unknown>> };

function contextOf(sent: Sent[], meta?: Readonly<Record<string, unknown>>) {
  const notify = (method: string, params: object): void => void sent.push({ method, params: { ...params } });
  return { meta, logLevel: undefined, notify };
}

describe("Exchange", () => {
  it("RE-30 counts what says no number, and leaves out what does not go up or is none", () => {
    const sent: Sent[] = [];
    const exchange = new RequestReporter();
    exchange.attach(contextOf(sent, { progressToken: 7 }));
    for (const value of ["a", { step: 2 }, Number.NaN, 1, 10, { progress: 4 }, "b", () => {}]) {
      exchange.progress(value);
    }
    expect(sent.map(({ params }) => params)).toEqual([
      { progressToken: 7, progress: 1, message: "a" },
      { progressToken: 7, progress: 2, message: '{"step":2}' },
      { progressToken: 7, progress: 10 },
      { progressToken: 7, progress: 11, message: "b" },
      { progressToken: 7, progress: 12 },
    ]);
  });

  it("RE-30 tells how much there is to do, in either of the two forms", () => {
    const sent: Sent[] = [];
    const exchange = new RequestReporter();
    exchange.attach(contextOf(sent, { progressToken: 7 }));
    const said = [
      { done: 1, of: 3 },
      { progress: 2, total: 3 },
      { done: 3, of: 3, message: "All." },
      { done: "4" },
    ];
    for (const value of said) exchange.progress(value);
    expect(sent.map(({ params }) => params)).toEqual([
      { progressToken: 7, progress: 1, total: 3 },
      { progressToken: 7, progress: 2, total: 3 },
      { progressToken: 7, progress: 3, total: 3, message: "All." },
      { progressToken: 7, progress: 4, message: '{"done":"4"}' },
    ]);
  });

  it("RE-30 tells nothing to a request that asked for no progress, or is over", () => {
    const sent: Sent[] = [];
    const exchange = new RequestReporter();
    exchange.attach(contextOf(sent));
    exchange.progress(1);
    exchange.attach(undefined);
    exchange.log({ level: "error", message: "late" }, "a.b");
    expect(sent).toEqual([]);
  });

  it("RE-30 compares levels by importance", () => {
    expect(isHeard("warning", "warning")).toBe(true);
    expect(isHeard("notice", "warning")).toBe(false);
    expect(isHeard("emergency", "off")).toBe(false);
    expect(isHeard("debug", undefined)).toBe(true);
  });

  it("RE-30 takes the trace of a request over, and nothing else of its meta", () => {
    const meta = { traceparent: "00-a-b-01", tracestate: 7, baggage: "x".repeat(8_193), identity: "root" };
    expect(metadataOf(contextOf([], meta))).toEqual({ traceparent: "00-a-b-01" });
    expect(metadataOf(contextOf([], { baggage: "x".repeat(8_192) }))).toEqual({ baggage: "x".repeat(8_192) });
    expect(metadataOf(contextOf([]))).toBeUndefined();
  });
});
