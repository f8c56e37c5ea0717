import { OperationRegistry } from "../src/index.ts";
import { type FromMcpOptions, fromMcp, type McpSource } from "../src/mcp/index.ts";
import { createRawMcpServer, type RawAnswer, type RawMcpServer } from "./raw-mcp-server.ts";

/** Options of one import in a test. */
export type Extra = Partial<FromMcpOptions>;

/** The smallest input schema of a tool. */
export const OBJECT = { type: "object" };

/** Makes a text block. */
export const text = (value: string) => ({ type: "text", text: value });

const open: McpSource[] = [];

/** Closes everything a test imported. */
export async function closeImported(): Promise<void> {
  for (const source of open.splice(0)) await source.close();
}

/** Imports a server, and everything it has to say. */
export async function imported(server: Pick<RawMcpServer, "transport">, extra: Extra = {}) {
  const warnings: string[] = [];
  const source = await fromMcp(
    { transport: server.transport },
    {
      protocol: "2025",
      namespace: "raw",
      onWarning: (message: string) => warnings.push(message),
      ...extra,
    },
  );
  open.push(source);
  const registry = new OperationRegistry([], { onWarning: () => {} });
  registry.registerAll(source);
  return { source, registry, warnings };
}

/** A raw server with these tools, which answer with `result`. */
export function serverOf(
  tools: () => readonly unknown[],
  call: RawAnswer = () => ({ content: [] }),
): RawMcpServer {
  return createRawMcpServer({ "tools/list": () => ({ tools: tools() }), "tools/call": call });
}
