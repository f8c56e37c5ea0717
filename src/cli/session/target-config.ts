import { safeLine } from "../../core/text/clean-text.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { GatewayConfig, McpServerConfig } from "../../gateway/config/gateway-config.ts";
import { escapeReferences } from "../../gateway/config/resolve-config.ts";
import { SourceFault } from "../../gateway/sources/source.ts";
import type { SourceLogin } from "../../gateway/sources/source-login.ts";
import type { McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import { CommandError, type Io } from "../io.ts";
import type { SourceFlags } from "./session.ts";

/** The names under which single targets are mounted. */
const TARGET_NAMES = { mcp: "mcp", openapi: "api", url: "gateway" } as const;

/** Milliseconds that a connection to an MCP server may take to be made, unless it is told otherwise. */
const CONNECT_MS = 30_000;

/** The config that `--mcp`, `--openapi` or `--url` stand for; nothing where none is given. */
export function targetConfig(io: Io, flags: SourceFlags): GatewayConfig | undefined {
  const given = (["config", "mcp", "openapi", "url"] as const).filter((name) => flags[name] !== undefined);
  if (given.length > 1)
    throw new CommandError(`${given.map((name) => `--${name}`).join(" and ")} cannot be given together.`);
  assertApiFlags(flags);
  const token = tokenOf(io, flags);
  if (flags.mcp !== undefined) return { mcpServers: { [TARGET_NAMES.mcp]: mcpTarget(flags, token) } };
  if (flags.openapi !== undefined)
    return { openapi: { [TARGET_NAMES.openapi]: apiTarget(flags.openapi, flags, token) } };
  if (flags.url === undefined) {
    if (flags.tokenEnv !== undefined)
      throw new CommandError("--token-env goes with --url, --mcp or --openapi.");
    return undefined;
  }
  const document = `${gatewayBase(flags.url)}/openapi.json`;
  const auth = token === undefined ? {} : { auth: { bearer: escapeReferences(token) } };
  return {
    openapi: { [TARGET_NAMES.url]: { document: escapeReferences(document), keepIds: true, ...auth } },
  };
}

/** Refuses the name of a source that is none of those there are. */
export function assertSourceNames(names: readonly string[], known: readonly string[]): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const hint = didYouMean(nearestName(unknown, known), `; there are ${safeLine(known.join(", "), 1_000)}.`);
  throw new CommandError(`There is no source "${safeLine(unknown, 80)}"${hint}`);
}

/** Who waits longer for a command also waits longer for its one server, which may be fetched first. */
function mcpTarget({ mcp: target = "", timeout = 0 }: SourceFlags, token: string | undefined) {
  const patience = timeout > CONNECT_MS ? { connectTimeoutMs: timeout } : {};
  if (/^https?:\/\//i.test(target)) {
    const bearer = token !== undefined && { bearer: escapeReferences(token) };
    return { url: escapeReferences(target), ...bearer, ...patience };
  }
  const [command, ...args] = splitCommandLine(target);
  if (command === undefined) throw new CommandError("--mcp needs an address, or a command line in quotes.");
  return { command: escapeReferences(command), args: args.map(escapeReferences), ...patience };
}

function apiTarget(document: string, { baseUrl, allowPrivate }: SourceFlags, token: string | undefined) {
  return {
    document: escapeReferences(document),
    ...(baseUrl !== undefined && { baseUrl: escapeReferences(baseUrl) }),
    ...(allowPrivate === true && { allowPrivate }),
    ...(token !== undefined && { auth: { bearer: escapeReferences(token) } }),
  };
}

/** What is said of an API in a config stands there, so that readers of the config see it. */
function assertApiFlags({ openapi, baseUrl, allowPrivate }: SourceFlags): void {
  assertBaseUrl(baseUrl);
  if (openapi !== undefined) return;
  const given = [baseUrl !== undefined && "--base-url", allowPrivate === true && "--allow-private"];
  const names = given.filter((name) => name !== false);
  if (names.length === 0) return;
  const go = names.length === 1 ? "goes" : "go";
  throw new CommandError(
    `${names.join(" and ")} ${go} with --openapi; in a config, set baseUrl or allowPrivate of the API.`,
  );
}

/** Says what `--base-url` takes, unless it is that. */
export function assertBaseUrl(baseUrl: string | undefined): void {
  if (baseUrl === undefined || (/^https?:\/\//i.test(baseUrl) && parseUrl(baseUrl) !== undefined)) return;
  throw new CommandError(
    `--base-url takes an address such as https://api.example/v1; it is "${safeLine(baseUrl, 80)}".`,
  );
}

/** Where a gateway is, given its address or that of anything it serves. */
export function gatewayBase(url: string): string {
  const address = parseUrl(url);
  if (address === undefined || !/^https?:$/.test(address.protocol)) {
    throw new CommandError(
      `--url takes an address such as http://127.0.0.1:4100; it is "${safeLine(url, 80)}".`,
    );
  }
  const path = address.pathname.replace(/\/(?:mcp|api|docs|openapi\.json)?\/?$/, "");
  return `${address.origin}${path}`;
}

/** The variable that a token is taken from, set or not; `WAYBILL_TOKEN` is for gateways alone: it goes to no server that was merely named. */
export function tokenVariable({ tokenEnv, url }: SourceFlags): string | undefined {
  return tokenEnv ?? (url === undefined ? undefined : "WAYBILL_TOKEN");
}

/** The token for what was named, where one is given. */
export function tokenOf(io: Io, flags: SourceFlags): string | undefined {
  if (flags.token !== undefined) return flags.token === "" ? undefined : flags.token;
  const name = tokenVariable(flags);
  if (name === undefined) return undefined;
  const token = io.env[name];
  if (token === undefined && flags.tokenEnv !== undefined)
    throw new CommandError(`The environment variable ${safeLine(name, 80)} (--token-env) is not set.`);
  if (token === undefined || token === "") return undefined;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CommandError(
    `The token in ${safeLine(name, 80)} holds a space, a line break or another character that no header can carry; set it without.`,
  );
}

/** Splits a command line into words as shells do: quotes hold words together, a backslash takes the next sign as it is. */
export function splitCommandLine(line: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const sign = line[at] as string;
    if (quote === "" && /\s/.test(sign)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (sign === quote) quote = "";
    else if (quote === "" && (sign === '"' || sign === "'")) {
      quote = sign;
      word ??= "";
    } else if (sign === "\\" && quote !== "'" && isEscape(line[at + 1], quote)) {
      word = (word ?? "") + line[++at];
    } else word = (word ?? "") + sign;
  }
  if (quote !== "") throw new CommandError(`A quote (${quote}) in the command line is not closed.`);
  if (word !== undefined) words.push(word);
  return words;
}

/** Backslashes of paths on Windows stay. */
function isEscape(next: string | undefined, quote: string): boolean {
  return next !== undefined && (quote === '"' ? /["\\]/ : /[\s"'\\]/).test(next);
}

/** How a server of a config is connected to, without a gateway around it; what cannot work is a `CommandError`. */
export async function configuredConnection(
  server: McpServerConfig,
  baseDir: string,
  login?: SourceLogin,
): Promise<McpConnectionOptions> {
  // Not needed to call through a gateway that runs.
  const { toMcpConnection } = await import("../../gateway/sources/mcp-server-source.ts");
  try {
    return await toMcpConnection(server, baseDir, login);
  } catch (thrown) {
    if (thrown instanceof SourceFault) throw new CommandError(thrown.message.replace(/[^.!?]$/, "$&."));
    throw thrown;
  }
}
