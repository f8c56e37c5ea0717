import { afterEach, describe, expect, it } from "vitest";
import { OperationRegistry, Type } from "../src/index.ts";
import { serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { serveHttp } from "../src/openapi/index.ts";
import { stream } from "./make-operation.ts";
import { other } from "./mcp-server-other.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const authenticate = (request: Request) => ({ subject: request.headers.get("x-who") ?? "nobody" });
const ACCEPT = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** Opens a stream that stays open until the test ends, and gives its status and first message or event. */
async function openStream(url: string, init: RequestInit = {}): Promise<{ status: number; first: string }> {
  const leaving = new AbortController();
  open.push(() => leaving.abort());
  const response = await fetch(url, { ...init, signal: leaving.signal });
  const reader = response.body?.getReader();
  let first = "";
  for (let step = await reader?.read(); step?.done === false; step = await reader?.read()) {
    first += new TextDecoder().decode(step.value);
    if (/^data: .*\n\n/m.test(first)) break;
  }
  return { status: response.status, first };
}

/** Opens a stream of changes, and gives what is listened to in it, or the error. */
async function listen(url: string, who: string, uris: readonly string[]) {
  const params = { notifications: { toolsListChanged: true, resourceSubscriptions: uris }, _meta: META };
  const { first } = await openStream(url, {
    method: "POST",
    headers: {
      ...ACCEPT,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "subscriptions/listen",
      "x-who": who,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "subscriptions/listen", params }),
  });
  const message = JSON.parse(/^data: (.*)$/m.exec(first)?.[1] ?? first) as {
    error?: { code: number; message: string };
    params?: { notifications: { resourceSubscriptions?: string[] } };
  };
  return { error: message.error, uris: message.params?.notifications.resourceSubscriptions ?? [] };
}

async function serveMcp(options: object = {}): Promise<string> {
  const server = toMcpServer(new OperationRegistry([]), { providers: [other("one"), other("two")] });
  const served = await serveMcpHttp(server, { authenticate, ...options });
  open.push(() => served.close({ timeoutMs: 0 }));
  return served.url;
}

/** An address of so many characters that the provider finds, whatever it is. */
const longUri = (characters: number, n = 0): string => {
  const name = `one://${n}-/data`;
  return `one://${n}-${"x".repeat(characters - name.length)}/data`;
};
/** Four addresses that have as many characters as one stream may. */
const FULL = [0, 1, 2, 3].map((n) => longUri(65_536, n));

describe("streams of changes", () => {
  it("RE-30 are a quarter of all for one caller, and the others find room", async () => {
    const url = await serveMcp({ limits: { subscriptions: 8 } });
    const errors = [];
    for (let n = 0; n < 3; n++) errors.push((await listen(url, "ann", [])).error?.message);
    expect(errors).toEqual([undefined, undefined, "Subscription limit reached"]);
    expect((await listen(url, "ben", [])).error).toBeUndefined();
  });

  it("RE-30 keep the addresses of resources that there are, and no others", async () => {
    const url = await serveMcp();
    const wanted = ["x://one", "x://nowhere", "x://two", "y://nobody"];
    expect((await listen(url, "ann", wanted)).uris).toEqual(["x://one", "x://two"]);
  });

  it("RE-30 keep addresses of so many characters, and one more is refused", async () => {
    const url = await serveMcp();
    expect((await listen(url, "ann", FULL)).uris).toHaveLength(4);
    expect((await listen(url, "ann", [...FULL, "x"])).error).toMatchObject({ code: -32_602 });
  });

  it("RE-30 keep them in all streams of a caller together, too", async () => {
    const url = await serveMcp();
    for (let n = 0; n < 16; n++) expect((await listen(url, "ann", FULL)).uris).toHaveLength(4);
    expect((await listen(url, "ann", ["x://one"])).uris).toEqual([]);
    expect((await listen(url, "ben", FULL)).uris).toHaveLength(4);
  });

  it("RE-30 keep as much of a 2025 client, which is told where there is no more room", async () => {
    const url = await serveMcp();
    const post = async (body: object, headers: Record<string, string> = {}) => {
      const message = JSON.stringify({ jsonrpc: "2.0", id: 1, ...body });
      return await fetch(url, { method: "POST", headers: { ...ACCEPT, ...headers }, body: message });
    };
    const clientInfo = { name: "t", version: "1" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const first = await post({ method: "initialize", params });
    await first.text();
    const session = { "mcp-session-id": first.headers.get("mcp-session-id") ?? "" };
    const ask = async (method: string, uri: string) =>
      (await (await post({ method, params: { uri } }, session)).text()).includes("RESOURCE_EXHAUSTED");
    for (const uri of FULL) expect(await ask("resources/subscribe", uri)).toBe(false);
    expect(await ask("resources/subscribe", "x://one")).toBe(true);
    expect(await ask("resources/unsubscribe", FULL[0] as string)).toBe(false);
    expect(await ask("resources/subscribe", "x://one")).toBe(false);
  });
});

describe("subscriptions over HTTP", () => {
  const registry = () =>
    new OperationRegistry([
      stream(
        "quiet.watch",
        async function* (_input, { signal }) {
          yield 1;
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
        { inputSchema: Type.Object({}) },
      ),
    ]);

  it("RE-30 are a quarter of all for one caller, and the others find room", async () => {
    const server = await serveHttp(registry(), { limits: { streams: 8 }, authenticate });
    open.push(() => server.close({ timeoutMs: 0 }));
    const watch = (who: string) => openStream(`${server.url}/api/quiet/watch`, { headers: { "x-who": who } });
    const opened = [await watch("ann"), await watch("ann"), await watch("ann"), await watch("ben")];
    expect(opened.map(({ status }) => status)).toEqual([200, 200, 503, 200]);
    expect(opened[2]?.first).toContain("RESOURCE_EXHAUSTED");
  });
});
