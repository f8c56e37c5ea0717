import { afterEach, describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { fromMcp, type McpSource } from "../src/mcp/index.ts";
import { until } from "./mcp-servers/scripted-connection.ts";

const open: McpSource[] = [];
afterEach(async () => {
  for (const source of open.splice(0)) await source.close();
});

const URL_OF_SERVER = "https://server.example/mcp";
const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {}, logging: {} },
    serverInfo: { name: "s", version: "1" },
  },
  "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] },
};

interface Message {
  readonly id?: number | string;
  readonly method?: string;
}

type Answer = (message: Message, request: Request) => Response | Promise<Response> | undefined;

/** An event stream of these texts, each in a piece of its own; it stays open where `isOpen` says so. */
function events(pieces: readonly string[], isOpen = false): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      if (!isOpen) controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

const said = (message: object): string => JSON.stringify({ jsonrpc: "2.0", ...message });

/** Imports a server that answers as it says, and ordinarily elsewhere. */
async function imported(answer: Answer, onLog?: () => void) {
  const fetch = async (to: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(to, init);
    const message: Message = request.method === "POST" ? await request.clone().json() : {};
    const own = answer(message, request);
    if (own !== undefined) return own;
    if (request.method === "GET") return new Response(null, { status: 405 });
    const { id, method = "" } = message;
    if (id === undefined || !(method in RESULTS)) return new Response(null, { status: 202 });
    return Response.json({ jsonrpc: "2.0", id, result: RESULTS[method] });
  };
  const source = await fromMcp(
    { url: URL_OF_SERVER },
    { fetch, namespace: "s", protocol: "2025", onWarning() {}, ...(onLog && { onLog }) },
  );
  open.push(source);
  const registry = new OperationRegistry();
  registry.registerAll(source);
  return registry;
}

const OK = { content: [{ type: "text", text: "ok" }] };

describe("the answer of a server as events", () => {
  it.each(["\n", "\r", "\r\n"])("RE-23 is there when its event ends, lines ending in %j", async (end) => {
    for (const isOpen of [false, true]) {
      const registry = await imported(({ id, method }) => {
        if (method !== "tools/call") return undefined;
        return events([`id: 1${end}data: ${said({ id, result: OK })}${end}${end}`], isOpen);
      });
      expect((await registry.execute("s.t", {})).data).toEqual(OK.content);
    }
  });

  it("RE-23 is taken up again after an event whose id is in any script", async () => {
    let asked: string | undefined;
    let call: Message["id"];
    const registry = await imported(({ id, method }, request) => {
      const last = request.headers.get("last-event-id");
      if (method === "tools/call") {
        call = id;
        return events(["id: 第一 é\ndata: \n\n"]);
      }
      if (last === null) return undefined;
      asked = Buffer.from(last, "latin1").toString("utf8");
      return events([`data: ${said({ id: call, result: OK })}\n\n`]);
    });
    expect((await registry.execute("s.t", {})).data).toEqual(OK.content);
    expect(asked).toBe("第一 é");
  });
});

describe("a server that asks without end and takes no answer", () => {
  const asking = (from: number): string[] =>
    Array.from({ length: 1_000 }, (_, n) => `data: ${said({ id: `q${from + n}`, method: "ping" })}\n\n`);
  const LOG = `data: ${said({ method: "notifications/message", params: { level: "info", data: "all is asked" } })}\n\n`;

  it("RE-30 costs a bounded number of requests, and its tools can be called", async () => {
    let held = 0;
    let isHeard = false;
    const registry = await imported(
      ({ id, method }, request) => {
        if (request.method === "GET") return events([...asking(0), ...asking(1_000), LOG], true);
        if (method === "tools/call") return Response.json({ jsonrpc: "2.0", id, result: OK });
        if (method !== undefined || id === undefined) return undefined;
        held += 1;
        return new Promise<Response>((_, reject) => {
          request.signal.addEventListener("abort", () => reject(request.signal.reason));
        });
      },
      () => {
        isHeard = true;
      },
    );
    await until(() => isHeard);
    expect((await registry.execute("s.t", {})).data).toEqual(OK.content);
    expect(held).toBe(256);
  });
});
