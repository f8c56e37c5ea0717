import { isPlainObject } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { Findings, ValueFacts } from "./check-shape.ts";
import { CONFIG_LIMITS, LEAST_SECRET_CHARACTERS, LEAST_TOKEN_CHARACTERS } from "./config-limits.ts";
import { type ConfigPath, pathKey, quote, showPath } from "./config-path.ts";
import { URL_SPELLINGS } from "./source-schemas.ts";

/** Checks what a schema cannot say: fields that go together, addresses, tokens, and who may reach the gateway. */
export function checkMeaning(config: unknown, facts: ValueFacts, findings: Findings): void {
  if (!isPlainObject(config)) return;
  const report: Report = (path, message, at = "value") => findings.issues.push({ path, at, message });
  const isKnown = (path: ConfigPath): boolean => !facts.unresolved.has(pathKey(path));
  const servers = membersOf(config["mcpServers"]);
  const apis = membersOf(config["openapi"]);
  if (servers.length + apis.length > CONFIG_LIMITS.sources) {
    report(
      [],
      `The config has ${servers.length + apis.length} sources; at most ${CONFIG_LIMITS.sources} are mounted.`,
    );
  }
  for (const [name, server] of servers) checkServer(server, ["mcpServers", name], report, isKnown);
  for (const [name, api] of apis) checkAddress(api["baseUrl"], ["openapi", name, "baseUrl"], report, isKnown);
  if (isPlainObject(config["serve"])) checkServe(config["serve"], report, isKnown);
  if (isPlainObject(config["bus"])) {
    const path = ["bus", "secret"];
    if (isKnown(path)) checkLength(config["bus"]["secret"], LEAST_SECRET_CHARACTERS, path, report);
  }
}

type Report = (path: ConfigPath, message: string, at?: "key" | "value") => void;
type Fields = Readonly<Record<string, unknown>>;

function membersOf(value: unknown): [string, Fields][] {
  if (!isPlainObject(value)) return [];
  return Object.entries(value).filter((entry): entry is [string, Fields] => isPlainObject(entry[1]));
}

function checkServer(
  server: Fields,
  path: ConfigPath,
  report: Report,
  isKnown: (path: ConfigPath) => boolean,
): void {
  const shown = showPath(path);
  const [url, ...more] = ["url", ...URL_SPELLINGS].filter((name) => server[name] !== undefined);
  const hasCommand = server["command"] !== undefined;
  if (url === undefined && !hasCommand)
    report(path, `${shown} needs a command to start, or the url of a server.`);
  if (url !== undefined && hasCommand)
    report(path, `${shown} has both command and ${url}; keep one of them.`);
  if (more.length > 0) report(path, `${shown} has both ${url} and ${more.join(" and ")}; keep url.`);
  const { type } = server;
  if (type === "stdio" && url !== undefined && !hasCommand) {
    report([...path, "type"], `${shown}.type is "stdio", which needs a command; it has ${url}.`);
  } else if (typeof type === "string" && type !== "stdio" && hasCommand && url === undefined) {
    report([...path, "type"], `${shown}.type is ${quote(type)}, which needs a url; it has command.`);
  }
  if (url !== undefined) checkAddress(server[url], [...path, url], report, isKnown);
}

function checkAddress(
  value: unknown,
  path: ConfigPath,
  report: Report,
  isKnown: (path: ConfigPath) => boolean,
): void {
  if (typeof value !== "string" || value === "" || !isKnown(path)) return;
  // The address itself may hold a token, and is not shown.
  if (parseUrl(value) === undefined)
    report(path, `${showPath(path)} must be an address such as https://example.com/mcp.`);
  else if (!/^https?:$/.test(new URL(value).protocol)) {
    report(path, `${showPath(path)} must begin with https:// or http://.`);
  }
}

function checkServe(serve: Fields, report: Report, isKnown: (path: ConfigPath) => boolean): void {
  const auth = isPlainObject(serve["auth"]) ? serve["auth"] : {};
  const tokens = membersOf(auth["tokens"]);
  checkTokens(tokens, report, isKnown);
  checkAddress(serve["publicUrl"], ["serve", "publicUrl"], report, isKnown);
  const { host, format, formats } = serve;
  const isOpen = tokens.length === 0 && !isPlainObject(auth["jwt"]);
  if (typeof host === "string" && isOpen && !isLoopbackHost(host)) {
    report(
      ["serve", "host"],
      `serve.host ${quote(host)} lets other machines in, and nothing says who may call; add serve.auth.tokens (or serve.auth.jwt), or use "127.0.0.1".`,
    );
  }
  if (typeof format === "string" && Array.isArray(formats) && !formats.includes(format)) {
    report(["serve", "format"], `serve.format ${quote(format)} is not among serve.formats.`);
  }
}

function checkTokens(
  tokens: readonly [string, Fields][],
  report: Report,
  isKnown: (path: ConfigPath) => boolean,
): void {
  const holders = new Map<string, string>();
  for (const [name, { token }] of tokens) {
    const path = ["serve", "auth", "tokens", name, "token"];
    if (typeof token !== "string" || token === "" || !isKnown(path)) continue;
    checkLength(token, LEAST_TOKEN_CHARACTERS, path, report);
    const other = holders.get(token);
    if (other !== undefined)
      report(path, `${showPath(path)} is that of ${quote(other)} too; each holder needs one of their own.`);
    holders.set(token, name);
  }
}

/** Nobody shall guess it; an empty one has been reported. */
function checkLength(value: unknown, least: number, path: ConfigPath, report: Report): void {
  if (typeof value !== "string" || value === "" || value.length >= least) return;
  report(path, `${showPath(path)} must have at least ${least} characters; it has ${value.length}.`);
}

/** Tells whether only this machine can reach a gateway that listens on this address. */
function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return (
    bare === "localhost" ||
    bare.endsWith(".localhost") ||
    bare === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(bare)
  );
}
