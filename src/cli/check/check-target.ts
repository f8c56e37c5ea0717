import type { McpServerConfig, OpenApiConfig } from "../../gateway/config/gateway-config.ts";
import { describeAddress, describeServer } from "../../gateway/sources/shown-target.ts";
import { assertDocument, findSource, findTarget, type NamedSource } from "../find-target.ts";
import { CommandError, type Io } from "../io.ts";
import { readTarget } from "../session.ts";
import { gatewayBase } from "../target-config.ts";

/** One thing to check. */
export type CheckTarget = {
  /** What it is called, without secrets. */
  readonly label: string;
  /** What relative paths start from. */
  readonly baseDir: string;
  /** Takes secrets out of a text. */
  mask(text: string): string;
} & (
  | { readonly kind: "mcp"; readonly server: McpServerConfig }
  | { readonly kind: "openapi"; readonly api: OpenApiConfig }
);

/** What the command line says of the target. */
export interface TargetFlags {
  readonly config?: string | undefined;
  /** The target, or `true` where it only says what the target is. */
  readonly mcp?: string | true | undefined;
  readonly openapi?: string | true | undefined;
  readonly url?: string | undefined;
  readonly tokenEnv?: string | undefined;
}

/** Finds out what is meant to be checked; a running gateway is checked as both. */
export async function findTargets(
  io: Io,
  target: string | undefined,
  flags: TargetFlags,
): Promise<readonly CheckTarget[]> {
  const { mcp, openapi, url, config } = flags;
  const wanted = [target, mcp, openapi, url].filter((one) => typeof one === "string") as string[];
  if (wanted.length > 1) throw new CommandError("check takes one target.");
  const [one] = wanted;
  if (one === undefined) {
    throw new CommandError(
      'check needs a target: an address, a command line in quotes, a document, or a source of the config; "waybill check --help" has examples.',
    );
  }
  if (mcp !== undefined) return direct(io, { mcp: one }, flags);
  if (openapi !== undefined) return direct(io, { openapi: one }, flags);
  if (url !== undefined) return gateway(io, one, flags);
  if (config !== undefined) return [fromSource(await findSource(io, one, config))];
  return sniffed(io, one, flags);
}

/** Something on the command line itself. */
async function direct(
  io: Io,
  one: { readonly mcp: string } | { readonly openapi: string },
  { tokenEnv }: TargetFlags,
): Promise<readonly CheckTarget[]> {
  const { loaded } = await readTarget(io, { ...one, tokenEnv });
  const { baseDir, secrets } = loaded;
  const mask = (text: string) => secrets.mask(text);
  const [server] = Object.values(loaded.config.mcpServers ?? {});
  const [api] = Object.values(loaded.config.openapi ?? {});
  if (server !== undefined) {
    return [{ kind: "mcp", label: mask(describeServer(server)), server, baseDir, mask }];
  }
  if (api === undefined) throw new CommandError("There is nothing to check.");
  await assertDocument(io, api.document);
  return [{ kind: "openapi", label: mask(describeAddress(api.document)), api, baseDir, mask }];
}

async function gateway(io: Io, url: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  const base = gatewayBase(url);
  // What merely looks like a gateway gets no token that nobody meant for it.
  const isMeant = flags.url !== undefined && io.env["WAYBILL_TOKEN"];
  const tokenEnv = flags.tokenEnv ?? (isMeant ? "WAYBILL_TOKEN" : undefined);
  const parts = [{ mcp: `${base}/mcp` }, { openapi: `${base}/openapi.json` }];
  return (await Promise.all(parts.map((part) => direct(io, part, { tokenEnv })))).flat();
}

/** Whatever a word, an address or a command line turns out to name. */
async function sniffed(io: Io, text: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  const found = await findTarget(io, text);
  switch (found.kind) {
    case "openapi":
      return direct(io, { openapi: text }, flags);
    case "gateway":
      return gateway(io, text, flags);
    case "mcp":
      return direct(io, { mcp: text }, flags);
    case "source":
      return [fromSource(found)];
  }
}

function fromSource({ name, key, loaded }: NamedSource): CheckTarget {
  const { mcpServers = {}, openapi = {} } = loaded.config;
  const fault = Object.hasOwn(loaded.faults, key) ? loaded.faults[key] : undefined;
  if (fault !== undefined) throw new CommandError(`The source "${name}" cannot be used: ${fault}`);
  const { baseDir, secrets } = loaded;
  const mask = (text: string) => secrets.mask(text);
  const own = key.slice(key.indexOf(".") + 1);
  const server = key.startsWith("mcpServers.") ? mcpServers[own] : undefined;
  if (server !== undefined) return { kind: "mcp", label: name, server, baseDir, mask };
  return { kind: "openapi", label: name, api: openapi[own] as OpenApiConfig, baseDir, mask };
}
