import type { LoadedConfig } from "../gateway/config/loaded-config.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Io } from "./io.ts";

/** Where the operations of a command come from; the flags that most commands share. */
export interface SourceFlags {
  /** A config file. @default the nearest `waybill.config.*`, and without one the embedded default */
  readonly config?: string;
  /** One MCP server instead: an address, or a command line. */
  readonly mcp?: string;
  /** One OpenAPI document instead: a path or an address. */
  readonly openapi?: string;
  /** A running gateway instead. */
  readonly url?: string;
  /** A token for `--url` or for an `--mcp` address. */
  readonly token?: string;
}

/** What a command works on. */
export interface Session {
  readonly loaded: LoadedConfig;
  readonly gateway: Gateway;
  /** Ends it; nothing stays behind. */
  close(): Promise<void>;
}

/** How a session is opened. */
export interface SessionOptions {
  /** Only the source this operation belongs to is mounted, which is faster. @default all */
  readonly forOperation?: string;
}

/** Reads the config and mounts its sources, with progress on stderr; throws a `CommandError` for what cannot be used. */
export async function openSession(
  _io: Io,
  _flags: SourceFlags,
  _options: SessionOptions = {},
): Promise<Session> {
  throw new Error("not there yet");
}
