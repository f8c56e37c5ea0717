import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import type { StdioOptions } from "../src/mcp/channels/stdio-transport.ts";
import { createStdioTransport, type StdioTransport } from "../src/mcp/channels/stdio-transport.ts";

/** The path of a script in `test/mcp-children`. */
export function childScript(name: string): string {
  return fileURLToPath(new URL(`mcp-children/${name}`, import.meta.url));
}

/** A transport and all that it said, in order. */
export interface StdioChild {
  readonly transport: StdioTransport;
  readonly messages: JSONRPCMessage[];
  readonly oddities: string[];
  readonly errors: Error[];
  /** What was heard, by kind, to tell the order: "message", "close with 0". */
  readonly order: string[];
  /** Resolves with the next message. */
  next(): Promise<JSONRPCMessage>;
  /** Resolves when `onclose` is called. */
  readonly closed: Promise<void>;
}

/** Makes a transport on a script in `test/mcp-children` that is not started yet. */
export function createStdioChild(
  script: string,
  args: readonly string[] = [],
  options: Partial<StdioOptions> = {},
): StdioChild {
  const transport = createStdioTransport({
    command: process.execPath,
    args: [childScript(script), ...args],
    ...options,
  });
  const waiting: ((message: JSONRPCMessage) => void)[] = [];
  const child = { messages: [], oddities: [], errors: [], order: [] } as Pick<
    StdioChild,
    "messages" | "oddities" | "errors" | "order"
  >;
  transport.onmessage = (message) => {
    child.messages.push(message);
    child.order.push("message");
    waiting.shift()?.(message);
  };
  transport.onOddity = (message) => child.oddities.push(message);
  transport.onerror = (error) => child.errors.push(error);
  const closed = new Promise<void>((resolve) => {
    transport.onclose = () => {
      child.order.push(`close with ${transport.exit?.code ?? transport.exit?.signal}`);
      resolve();
    };
  });
  return { ...child, transport, closed, next: () => new Promise((resolve) => waiting.push(resolve)) };
}

/** Tells whether a process runs; one that is dead and that nobody has waited for does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
