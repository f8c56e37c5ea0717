import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Io } from "../io.ts";
import { ownerIdentity } from "../owner-identity.ts";
import { type ServeFlags, serveTarget } from "../serve/run-serve.ts";
import type { PersonalPlace } from "../serve/served-places.ts";
import { type ReadTarget, readTarget } from "../session.ts";
import { findInspectTarget, withOnlySource } from "./inspect-target.ts";
import { openBrowser } from "./open-browser.ts";
import { createOwnerToken, OWNER_TOKEN, withOwnerToken } from "./owner-token.ts";

/** The flags of `waybill inspect`. */
export interface InspectFlags extends Omit<ServeFlags, "stdio" | "inspect"> {
  readonly open?: boolean;
}

/** Beside the port of a gateway that may be running. */
const FIRST_PORT = 4_101;

/** Serves a target with the inspector, for whoever started it alone, until a signal. */
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
    import("../../gateway/serve/own-answers.ts"),
  ]);
  return {
    firstPort: FIRST_PORT,
    holders: (owned) => new Map([[OWNER_TOKEN, ownerIdentity(owned, [INSPECT_SCOPE, METRICS_SCOPE])]]),
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
