import type { Transport } from "@modelcontextprotocol/client";
import { CallError } from "../../core/errors/errors.ts";
import type { McpConnectionOptions } from "./connection-options.ts";
import { createHttpTransport, type HttpTransport } from "./http-transport.ts";
import type { McpLimits } from "./mcp-limits.ts";
import { toPlainLine } from "./plain-line.ts";
import { lastWordsIn } from "./stderr-tail.ts";
import { createStdioTransport, type StdioTransport } from "./stdio-transport.ts";

/** Why a channel is no more: a sentence for people, and what helps to find out. */
export interface Loss {
  /** In words of ours. */
  readonly reason: string;
  /** What the server said, as it is passed on. */
  readonly said?: string | undefined;
  readonly cause?: unknown;
  /** What the process said last, on one short line; for whoever started it, and for no wire. */
  readonly lastWords?: string;
}

/** A transport, and what is known of how it ended. */
export interface Channel {
  readonly transport: Transport;
  /** One process or one pipe, over which a probe may go unanswered. */
  readonly isPipe: boolean;
  loss(): Loss;
  /** Says goodbye where the other side wants to know, then closes. */
  close(): Promise<void>;
}

/** Who hears about the channel itself. */
export interface ChannelWatcher {
  onOddity(message: string): void;
  /** A credential is sent: the value of a header, or of a member of a form. */
  onCredential(name: string, value: string): void;
  /** An answer was dropped; without an id it is not known which. */
  onTooLarge(id: number | string | undefined, failure: CallError): void;
}

/** How long a server may take to hear that a session is over. */
const GOODBYE_MS = 1_000;

/** Makes the transport that the options ask for; nothing is started yet. */
export function createChannel(
  options: McpConnectionOptions,
  limits: McpLimits,
  watcher: ChannelWatcher,
): Channel {
  if ("command" in options) {
    const { command, args, env, cwd, inheritEnv } = options;
    const spawn = { command, args, env, cwd, inheritEnv, limits: { lineBytes: limits.messageBytes } };
    return toProcessChannel(createStdioTransport(spawn), watcher);
  }
  if (!("url" in options)) return toPlainChannel(options.transport());
  const transport = createHttpTransport(options, limits.messageBytes, {
    onCredential: (name, value) => watcher.onCredential(name, value),
    onTooLarge: (id) => {
      const what = `The answer of the MCP server is larger than ${limits.messageBytes} bytes.`;
      watcher.onTooLarge(id, new CallError("TOO_LARGE", what));
    },
  });
  return toHttpChannel(transport);
}

function toProcessChannel(transport: StdioTransport, watcher: ChannelWatcher): Channel {
  transport.onOddity = (message) => watcher.onOddity(message);
  return {
    transport,
    isPipe: true,
    loss: () => {
      const tail = toPlainLine(transport.stderrTail.slice(-2_000), 2_000);
      const reason = describeExit(transport);
      if (tail === "") return { reason };
      const lastWords = lastWordsIn(transport.stderrTail);
      return { reason, cause: new Error(`It last said: ${tail}`), lastWords };
    },
    close: () => transport.close(),
  };
}

function describeExit({ exit }: StdioTransport): string {
  if (exit === undefined) return "its process is gone";
  if (exit.signal !== null) return `its process was ended by ${exit.signal}`;
  return `its process exited with code ${exit.code}`;
}

function toPlainChannel(transport: Transport): Channel {
  return {
    transport,
    isPipe: transport.hasPerRequestStream !== true,
    loss: () => ({ reason: "the connection was closed" }),
    close: () => transport.close(),
  };
}

function toHttpChannel(transport: HttpTransport): Channel {
  return {
    transport,
    isPipe: false,
    loss: () => ({ reason: "the connection was closed" }),
    close: async () => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, GOODBYE_MS);
      });
      await Promise.race([transport.terminateSession().catch(() => {}), patience]);
      clearTimeout(timer);
      await transport.close();
    },
  };
}
