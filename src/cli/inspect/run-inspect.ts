import { APPROVE_SCOPE } from "../../gateway/approvals/approve-policy.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { CommandError, type Io } from "../io.ts";
import { type ServeFlags, serveTarget } from "../serve/run-serve.ts";
import type { PersonalPlace } from "../serve/served-places.ts";
import { assertDocument, findSource, findTarget } from "../session/find-target.ts";
import { ownerIdentity } from "../session/owner-identity.ts";
import { type ReadTarget, readTarget, type SourceFlags } from "../session/session.ts";
import { openBrowser } from "../terminal/open-browser.ts";
import { createOwnerToken, OWNER_TOKEN, withOwnerToken } from "./owner-token.ts";

/** The flags of `waybill inspect`. */
export interface InspectFlags extends Omit<ServeFlags, "stdio" | "inspect"> {
  readonly open?: boolean;
}

/** Beside the port of a gateway that may be running. */
const FIRST_PORT = 4_101;

/** Serves a target with the inspector, for the person who started it alone, until a signal. */
export async function runInspect(io: Io, target: string | undefined, flags: InspectFlags): Promise<number> {
  const { port, host, watch, logLevel, logFormat } = flags;
  const found = await findInspectTarget({ ...io, quiet: true }, target, flags);
  const token = createOwnerToken();
  const personal = await personalPlace(io, token, flags.open === true);
  const serveFlags = { port, host, watch, logLevel, logFormat, ...found.flags, inspect: true };
  const change = (loaded: LoadedConfig): LoadedConfig =>
    withOwnerToken(found.only === undefined ? loaded : withOnlySource(loaded, found.only), token);
  const read = async () => changed(await readTarget(io, found.flags, { isTold: false }), change);
  return serveTarget(io, given(serveFlags), { read, personal });
}

/** What was not said is not there. */
function given(flags: { readonly [Name in keyof ServeFlags]: ServeFlags[Name] | undefined }): ServeFlags {
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
}

/** The target with another config, also after it was read again. */
function changed(target: ReadTarget, change: (loaded: LoadedConfig) => LoadedConfig): ReadTarget {
  const reload = target.reload?.bind(target);
  return {
    ...target,
    loaded: change(target.loaded),
    ...(reload !== undefined && { reload: async () => change(await reload()) }),
  };
}

async function personalPlace(io: Io, token: string, isOpened: boolean): Promise<PersonalPlace> {
  const [{ INSPECT_SCOPE }, { METRICS_SCOPE }] = await Promise.all([
    import("../../inspector/server/inspector.ts"),
    import("../../gateway/serve/gateway-front.ts"),
  ]);
  return {
    firstPort: FIRST_PORT,
    holders: (owned) =>
      new Map([[OWNER_TOKEN, ownerIdentity(owned, [INSPECT_SCOPE, METRICS_SCOPE, APPROVE_SCOPE])]]),
    onListening(url) {
      const page = `${reachable(url)}/inspect/#token=${token}`;
      io.stdout.write(`${page}\n`);
      if (isOpened) void open(io, page);
    },
  };
}

async function open(io: Io, page: string): Promise<void> {
  const why = await openBrowser(page, io.env);
  if (why === undefined || io.quiet) return;
  io.stderr.write(`waybill: the browser did not open (${why}); open the address on stdout yourself.\n`);
}

/** Who listens everywhere is reached at one address. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/** What is looked at, as flags say it. */
interface InspectTarget {
  readonly flags: SourceFlags;
  /** The one source of the config that is meant, such as `mcpServers.github`. @default all */
  readonly only?: string;
}

/** A config by its usual name. */
const CONFIG_FILE = /(?:^|[\\/])waybill\.config\.[a-z]+$/i;

/** Finds out what is meant to be looked at; without a target, what the flags say. */
async function findInspectTarget(
  io: Io,
  target: string | undefined,
  flags: SourceFlags,
): Promise<InspectTarget> {
  const { config, mcp, openapi, url, tokenEnv, baseUrl, allowPrivate } = flags;
  // What has no use for these says so when it is read.
  const api = { baseUrl, allowPrivate };
  if (target === undefined) {
    if (openapi !== undefined) await assertDocument(io, openapi);
    return { flags: { config, mcp, openapi, url, tokenEnv, ...api } };
  }
  if ([mcp, openapi, url].some((given) => given !== undefined))
    throw new CommandError("inspect takes one target.");
  if (config !== undefined)
    return { flags: { config, ...api }, only: (await findSource(io, target, config)).key };
  if (CONFIG_FILE.test(target)) return { flags: { config: target, ...api } };
  const found = await findTarget(io, target);
  switch (found.kind) {
    case "mcp":
      return { flags: { mcp: target, tokenEnv, ...api } };
    case "openapi":
      await assertDocument(io, target);
      return { flags: { openapi: target, tokenEnv, ...api } };
    case "gateway":
      // What merely looks like a gateway gets no token that nobody meant for it.
      return { flags: { url: target, ...api, ...(tokenEnv === undefined ? { token: "" } : { tokenEnv }) } };
    case "source":
      return { flags: { ...api }, only: found.key };
  }
}

/** The config with one of its sources alone; one that is gone leaves nothing. */
function withOnlySource(loaded: LoadedConfig, key: string): LoadedConfig {
  const { mcpServers = {}, openapi = {}, operations: _, bus: __, ...rest } = loaded.config;
  const pick = <T>(kind: string, entries: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(entries).filter(([name]) => `${kind}.${name}` === key));
  const config = {
    ...rest,
    mcpServers: pick("mcpServers", mcpServers),
    openapi: pick("openapi", openapi),
  };
  return { ...loaded, config };
}
