import { parseUrl } from "../core/text/parse-url.ts";
import { safeLine } from "../core/text/safe-text.ts";
import type { GatewayConfig } from "../gateway/config/gateway-config.ts";
import { escapeReferences } from "../gateway/config/references.ts";
import { CommandError, type Io } from "./io.ts";
import type { SourceFlags } from "./session.ts";
import { splitCommandLine } from "./split-command-line.ts";

/** The names under which single targets are mounted. */
const TARGET_NAMES = { mcp: "mcp", openapi: "api", url: "gateway" } as const;

/** The config that `--mcp`, `--openapi` or `--url` stand for; nothing where none is given. */
export function targetConfig(io: Io, flags: SourceFlags): GatewayConfig | undefined {
  const given = (["config", "mcp", "openapi", "url"] as const).filter((name) => flags[name] !== undefined);
  if (given.length > 1)
    throw new CommandError(`${given.map((name) => `--${name}`).join(" and ")} cannot be given together.`);
  assertApiFlags(flags);
  const token = tokenOf(io, flags);
  if (flags.mcp !== undefined) return { mcpServers: { [TARGET_NAMES.mcp]: mcpTarget(flags.mcp, token) } };
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

function mcpTarget(target: string, token: string | undefined) {
  if (/^https?:\/\//i.test(target)) {
    return { url: escapeReferences(target), ...(token !== undefined && { bearer: escapeReferences(token) }) };
  }
  const [command, ...args] = splitCommandLine(target);
  if (command === undefined) throw new CommandError("--mcp needs an address, or a command line in quotes.");
  return { command: escapeReferences(command), args: args.map(escapeReferences) };
}

function apiTarget(document: string, { baseUrl, allowPrivate }: SourceFlags, token: string | undefined) {
  return {
    document: escapeReferences(document),
    ...(baseUrl !== undefined && { baseUrl: escapeReferences(baseUrl) }),
    ...(allowPrivate === true && { allowPrivate }),
    ...(token !== undefined && { auth: { bearer: escapeReferences(token) } }),
  };
}

/** What is said of an API in a config stands there, so that it is seen by whoever reads it. */
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

function tokenOf(io: Io, flags: SourceFlags): string | undefined {
  if (flags.token !== undefined) return flags.token === "" ? undefined : flags.token;
  const name = tokenVariable(flags);
  if (name === undefined) return undefined;
  const token = io.env[name];
  if (token === undefined && flags.tokenEnv !== undefined)
    throw new CommandError(`The environment variable ${safeLine(name, 80)} (--token-env) is not set.`);
  return token === "" ? undefined : token;
}
