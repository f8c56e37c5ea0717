import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { type ActingSource, actingSources, keepsGrants } from "../../gateway/callers/acting-source.ts";
import { CallerLogins, endGrant } from "../../gateway/callers/caller-logins.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { ownerKeysOf } from "../../gateway/serve/gateway-auth.ts";
import { GatewayState } from "../../gateway/state/gateway-state.ts";
import type { Revocation } from "../../http/oauth/login.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { readTarget, type SourceFlags } from "../session/session.ts";

/** Whose logins are ended: those of one caller, or of all. */
export interface LogoutFlags extends Pick<SourceFlags, "config" | "mcp"> {
  /** The name of a caller, as the gateway knows them. */
  readonly caller?: string;
  readonly allCallers?: boolean;
}

/** Ends what callers have of their own for a source. */
export async function runLogoutCallers(
  io: Io,
  name: string | undefined,
  flags: LogoutFlags,
): Promise<number> {
  const { loaded } = await readTarget(io, flags);
  const source = findActing(loaded, name);
  const outcomes = [
    ...(await endInFiles({ source, caller: flags.caller })),
    ...(await endInState(io, loaded, { source, caller: flags.caller })),
  ];
  const [count, failed] = [outcomes.length, outcomes.filter((outcome) => outcome === "failed").length];
  const whose = flags.caller === undefined ? "" : ` of ${safeLine(flags.caller, 80)}`;
  const what = count === 1 ? "login or key" : "logins and keys";
  io.stdout.write(`${source.name}: ${count} ${what}${whose} removed.\n`);
  if (failed === 0) return EXIT.ok;
  io.stderr.write(
    `waybill: The authorization server did not revoke ${failed} of them; they end by themselves, or in the accounts there.\n`,
  );
  return EXIT.callError;
}

function findActing(loaded: LoadedConfig, name: string | undefined): ActingSource {
  const acting = actingSources(loaded).filter(keepsGrants);
  const found =
    name === undefined && acting.length === 1 ? acting[0] : acting.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = acting.map((one) => one.name).join(", ");
  throw new CommandError(
    names === ""
      ? 'No source of the config is asked as each caller; "identity" says so.'
      : `Which source? Callers have logins or keys of their own for: ${safeLine(names, 1_000)}.`,
  );
}

/** Whose logins are ended, and of which source. */
interface EndedLogins {
  readonly source: ActingSource;
  /** Those of all where it is absent. */
  readonly caller: string | undefined;
}

async function endInFiles({ source, caller }: EndedLogins): Promise<readonly (Revocation | undefined)[]> {
  const { login } = source;
  const outcomes: (Revocation | undefined)[] = [];
  for (const kept of await login.ofCallers.all()) {
    const stored = await kept.load().catch(() => undefined);
    // What cannot be read is not known to be of this source; the name of the file says that of what is called almost the same too.
    if (JSON.stringify(stored?.["source"]) !== JSON.stringify(login.ofCallers.id)) continue;
    const owner = stored?.["caller"];
    if (caller !== undefined && !(isPlainObject(owner) && owner["subject"] === caller)) continue;
    outcomes.push(await endGrant(kept, login.client.issuer));
  }
  return outcomes;
}

/** The state tells nobody whose records it has: a caller has to be named. */
async function endInState(
  io: Io,
  loaded: LoadedConfig,
  { source, caller }: EndedLogins,
): Promise<readonly (Revocation | undefined)[]> {
  if (loaded.config.serve?.sessions?.key === undefined) return [];
  const state = new GatewayState(loaded, {
    onWarning: (message) => io.stderr.write(`waybill: ${message}\n`),
  });
  try {
    if (state.shared === undefined) return [];
    if (caller === undefined) {
      throw new CommandError("Replicas share what callers have: name each with --caller.");
    }
    const logins = new CallerLogins(loaded, { shared: () => state.shared });
    const outcomes: (Revocation | undefined)[] = [];
    for (const key of ownerKeysOf(caller, loaded.config.serve?.auth)) {
      const owner = { key, subject: caller };
      if ((await logins.heldBy(source, owner)) !== undefined) outcomes.push(await logins.end(source, owner));
    }
    return outcomes;
  } finally {
    await state.close();
  }
}
