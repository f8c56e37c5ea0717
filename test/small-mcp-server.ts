import { acceptedContent, inputRequired, Server, type ServerContext } from "@modelcontextprotocol/server";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import { checkParamHeaders } from "../src/mcp/server/http-params.ts";
import type { McpPeer, McpServer, McpServerEvent } from "../src/mcp/server/mcp-server.ts";
import { identityOf } from "../src/mcp/server/peer-identity.ts";

/** A server of a few tools, and what its tests look at. */
export interface SmallMcpServer extends McpServer {
  readonly peers: McpPeer[];
  /** How many slow calls run. */
  running: number;
  /** How many slow calls were told to stop. */
  aborted: number;
  /** Ends the slow calls that run, as if their time were over. */
  finish(): void;
  emit(event: McpServerEvent): void;
}

const QUESTION = {
  type: "object" as const,
  properties: { colour: { type: "string" as const } },
  required: ["colour"],
};

/** The input schema of `route`: headers repeat three of its arguments. */
const ROUTE = {
  type: "object",
  properties: {
    region: { type: "string", "x-mcp-header": "Region" },
    count: { type: "integer", "x-mcp-header": "Count" },
    deep: { type: "object", properties: { flag: { type: "boolean", "x-mcp-header": "Flag" } } },
    plain: { type: "string" },
  },
};

/** Makes a server of the SDK's low level with tools `echo`, `whoami`, `slow`, `big`, `ask` and `route`. */
export function createSmallMcpServer(): SmallMcpServer {
  const listeners = new Set<(event: McpServerEvent) => void>();
  const slow = new Set<() => void>();
  const small: SmallMcpServer = {
    peers: [],
    running: 0,
    aborted: 0,
    finish: () => {
      for (const end of slow) end();
    },
    emit: (event) => {
      for (const listener of listeners) listener(event);
    },
    open: (peer) => {
      small.peers.push(peer);
      return openServer(small, peer, slow);
    },
    onEvent: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: async () => {},
  };
  return small;
}

function openServer(small: SmallMcpServer, peer: McpPeer, running: Set<() => void>): Server {
  const server = new Server(
    { name: "small", version: "1.0.0" },
    {
      capabilities: { tools: { listChanged: true } },
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
    },
  );
  const inputSchema = { type: "object" } as const;
  const names = ["echo", "whoami", "slow", "big", "ask", "route"];
  server.setRequestHandler("tools/list", () => ({ tools: names.map((name) => ({ name, inputSchema })) }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const args = params.arguments ?? {};
    if (params.name === "slow") return slow(small, context, { ms: Number(args["ms"] ?? 50), running });
    if (params.name === "ask") return ask(peer, context);
    if (params.name === "big") return toText("x".repeat(Number(args["size"])));
    if (params.name === "route") checkParamHeaders(context, ROUTE, args);
    if (params.name === "echo") return toText(String(args["text"]));
    const headers = Object.fromEntries(context.http?.req?.headers ?? []);
    const told = { identity: identityOf(context, peer.identity), authInfo: context.http?.authInfo, headers };
    return toText(JSON.stringify(told));
  });
  if (peer.stays && peer.era === "legacy") {
    const stop = small.onEvent(() => void server.sendToolListChanged().catch(() => {}));
    server.onclose = stop;
  }
  return server;
}

function toText(text: string): { content: { type: "text"; text: string }[] } {
  return { content: [{ type: "text", text }] };
}

async function slow(
  small: SmallMcpServer,
  context: ServerContext,
  { ms, running }: { ms: number; running: Set<() => void> },
) {
  const { signal, _meta, notify } = context.mcpReq;
  const token = _meta?.progressToken;
  small.running += 1;
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      running.delete(end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    running.add(end);
    signal.addEventListener("abort", () => {
      small.aborted += 1;
      end();
    });
  });
  if (token !== undefined) {
    await notify({
      method: "notifications/progress",
      params: { progressToken: token, progress: 1, total: 2 },
    });
  }
  await ended;
  small.running -= 1;
  return toText("done");
}

async function ask(peer: McpPeer, context: ServerContext) {
  const question = { message: "Which colour?", requestedSchema: QUESTION };
  if (peer.era === "legacy") {
    const { content } = await context.mcpReq.elicitInput({ mode: "form", ...question });
    return toText(String(content?.["colour"]));
  }
  const answer = acceptedContent<{ colour: string }>(context.mcpReq.inputResponses, "colour");
  if (answer !== undefined) return toText(answer.colour);
  return inputRequired({ inputRequests: { colour: inputRequired.elicit(question) } });
}
