import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpServerConfig, OpenApiConfig, SourceIdentityConfig } from "./gateway-config.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Says as whom a source is asked. */
export function identityOf({
  identity = "shared",
}: Pick<McpServerConfig | OpenApiConfig, "identity">): SourceIdentityConfig {
  return typeof identity === "string" ? { mode: identity } : identity;
}

/** Fields of `identity` by the mode that they belong to; the rest of the modes take none of them. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  audience: ["exchange", "forward"],
  scope: ["exchange"],
  issuer: ["exchange"],
  clientId: ["exchange"],
  clientSecret: ["exchange"],
  assertion: ["exchange"],
  header: ["key"],
  scheme: ["key", "exchange", "forward"],
  connections: ["caller", "key", "exchange", "forward"],
  idleMs: ["caller", "key", "exchange", "forward"],
};
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  exchange: ["issuer", "clientId"],
  forward: ["audience"],
};
/** Fields that connections have, and APIs have none of. */
const OF_SERVERS: ReadonlySet<string> = new Set(["header", "connections", "idleMs"]);

/** Says what does not go together in the `identity` of a source; whatever has the wrong shape is reported elsewhere. */
export function identityMistakes(
  entry: Fields,
  shown: string,
  { kind, knowsCallers }: { readonly kind: "mcpServers" | "openapi"; readonly knowsCallers: boolean },
): readonly string[] {
  const { identity } = entry;
  const given: Fields = isPlainObject(identity) ? identity : {};
  const mode = typeof identity === "string" ? identity : given["mode"];
  if (typeof mode !== "string" || mode === "shared") return [];
  const mistakes: string[] = [];
  const place = `${shown}.identity`;
  if (!knowsCallers) {
    mistakes.push(
      `${place} is "${mode}", and nothing says who calls; add serve.auth.tokens (or serve.auth.jwt).`,
    );
  }
  if (kind === "mcpServers" && entry["command"] !== undefined) {
    mistakes.push(
      `${place} is "${mode}", which needs a url; a process that is started is one for all callers.`,
    );
  }
  if (kind === "openapi" && mode === "caller" && !hasLogin(entry["auth"])) {
    mistakes.push(
      `${place} is "caller", and no credential in ${shown}.auth is a login; add "auth": { "oauth2": { "login": true } }.`,
    );
  }
  for (const name of NEEDED[mode] ?? []) {
    if (given[name] === undefined) mistakes.push(`${place} is "${mode}", which needs ${name}.`);
  }
  for (const name of Object.keys(given)) {
    const modes = FIELDS[name];
    const isOther = kind === "openapi" ? OF_SERVERS.has(name) : name === "scheme";
    if (modes === undefined) continue;
    if (isOther) mistakes.push(`${place}.${name} is for ${kind === "openapi" ? "MCP servers" : "APIs"}.`);
    else if (!modes.includes(mode)) mistakes.push(`${place}.${name} is not for the mode "${mode}".`);
  }
  return mistakes;
}

function hasLogin(auth: unknown): boolean {
  return (
    isPlainObject(auth) && Object.values(auth).some((one) => isPlainObject(one) && one["login"] === true)
  );
}
