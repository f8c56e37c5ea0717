import { createResultReader } from "../src/formats/index.ts";
import { type Identity, type OperationContext, OperationRegistry } from "../src/index.ts";
import { type McpServer, toMcpServer } from "../src/mcp/index.ts";
import { query } from "./make-operation.ts";

/** A server of a few tools, and what its tests look at. */
export interface SmallMcpServer extends McpServer {
  /** How many slow calls run. */
  running: number;
  /** How many slow calls were told to stop. */
  aborted: number;
  /** Ends the slow calls that run, as if their time were over. */
  finish(): void;
  /** Has one more tool from now on, of which clients are told. */
  change(): void;
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
} as const;

/** Makes a server with tools `echo`, `whoami`, `slow`, `big`, `ask` and `route`. */
export function createSmallMcpServer(
  options: {
    readonly identity?: Identity;
    readonly sessionKey?: string | readonly string[] | undefined;
  } = {},
): SmallMcpServer {
  const slow = new Set<() => void>();
  const counts = { running: 0, aborted: 0, changes: 0 };
  const text = (
    name: string,
    run: (input: never, context: OperationContext) => unknown,
    inputSchema?: object,
  ) =>
    query(`small.${name}`, async (input, context) => toText(String(await run(input as never, context))), {
      returns: createResultReader(),
      inputSchema: inputSchema ?? {},
    });
  const registry = new OperationRegistry([
    text("echo", (input: { text?: unknown }) => input.text),
    text("whoami", (_, { identity }) => JSON.stringify({ identity })),
    text("big", (input: { size: number }) => "x".repeat(input.size)),
    text("route", () => "routed", ROUTE),
    text("ask", async (_, { elicit }) => {
      const { content } = await elicit(
        { message: "Which colour?", requestedSchema: QUESTION },
        { key: "colour" },
      );
      return content?.["colour"];
    }),
    text("slow", async (input: { ms?: number }, { signal, progress }) => {
      counts.running += 1;
      progress({ progress: 1, total: 2 });
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          slow.delete(end);
          resolve();
        };
        const timer = setTimeout(end, input.ms ?? 50);
        slow.add(end);
        signal.addEventListener("abort", () => {
          counts.aborted += 1;
          end();
        });
      });
      counts.running -= 1;
      return "done";
    }),
  ]);
  const server = toMcpServer(registry, { name: "small", names: { prefix: false }, ...options });
  return Object.defineProperties(server, {
    running: { get: () => counts.running },
    aborted: { get: () => counts.aborted },
    finish: {
      value: () => {
        for (const end of slow) end();
      },
    },
    change: {
      value: () => {
        counts.changes += 1;
        registry.register(text(`more${counts.changes}`, () => "more"));
      },
    },
  }) as SmallMcpServer;
}

function toText(text: string): object {
  return { content: [{ type: "text", text }] };
}
