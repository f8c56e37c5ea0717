import { isCallError } from "../../core/errors/errors.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { didYouMean, nearestNames } from "../../core/text/nearest-name.ts";
import { identityOf } from "../../gateway/config/check-identity.ts";
import type { OpenApiConfig } from "../../gateway/config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../../gateway/config/loaded-config.ts";
import { entryOf, type LoginEntry } from "../../gateway/sources/login-target.ts";
import { SourceFault } from "../../gateway/sources/source.ts";
import { checkLogin, loginsOf, type SourceLogin } from "../../gateway/sources/source-login.ts";
import { SignInError } from "../../http/oauth/oauth-authorizer.ts";
import { StoreFault } from "../../http/oauth/store-key.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { readTarget, type SourceFlags } from "../session/session.ts";

/** A source that a person logs in to, and the config that it stands in. */
export interface FoundLogin {
  readonly login: SourceLogin;
  readonly loaded: LoadedConfig;
}

/** Finds the login of a source by name; the only source there is needs none. */
export async function findLogin(io: Io, name: string | undefined, flags: SourceFlags): Promise<FoundLogin> {
  const { loaded } = await readTarget(io, flags);
  const names = sourceNames(loaded.config);
  const wanted = name ?? (names.size === 1 ? [...names.values()][0] : undefined);
  if (wanted === undefined)
    throw new CommandError(`Which source? There are: ${[...names.values()].join(", ")}.`);
  const place = [...names].find(
    ([key, given]) => given === wanted || key.slice(key.indexOf(".") + 1) === wanted,
  )?.[0];
  if (place === undefined) {
    const near = didYouMean(nearestNames(wanted, [...names.values()]));
    throw new CommandError(`The config has no source "${safeLine(wanted, 80)}"${near}`);
  }
  const login = loginsOf(loaded).find((each) => each.place === place);
  if (login === undefined) throw new CommandError(whyNone(wanted, entryOf(loaded, place)));
  checkEntry(login, entryOf(loaded, place));
  return { login, loaded };
}

function checkEntry(login: SourceLogin, entry: LoginEntry): void {
  try {
    checkLogin(login, entry.document === undefined ? undefined : (entry as OpenApiConfig));
  } catch (thrown) {
    if (thrown instanceof SourceFault) throw new CommandError(`${login.place}: ${thrown.message}.`);
    throw thrown;
  }
}

function whyNone(name: string, entry: LoginEntry): string {
  const { command, document } = entry;
  const shown = `"${safeLine(name, 80)}"`;
  if (document !== undefined && identityOf(entry).mode !== "shared") {
    return `The source ${shown} is asked as each caller: callers log in by the link that a call without a login is answered with, or at /login of the gateway.`;
  }
  if (command !== undefined) return `The source ${shown} is a process that is started here; it has no login.`;
  if (document !== undefined)
    return `The source ${shown} has no login; set openapi.${safeLine(name, 80)}.auth to { "oauth2": { "login": true } }.`;
  return `The source ${shown} has another credential in the config (bearer, headers or oauth), and no login beside it.`;
}

/** Says in one sentence why a login failed; what is none of these is thrown on. */
export function toLoginFailure(thrown: unknown, name: string): unknown {
  if (thrown instanceof CommandError || isCallError(thrown)) return thrown;
  if (thrown instanceof SignInError) {
    return new CommandError(
      `Nobody was logged in to "${safeLine(name, 80)}": ${thrown.message}`,
      EXIT.callError,
    );
  }
  if (thrown instanceof StoreFault) return new CommandError(thrown.message, EXIT.callError);
  if (thrown instanceof SourceFault) return new CommandError(thrown.message);
  const { code } = thrown as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") {
    return new CommandError("The port of redirectUrl is in use on this machine.", EXIT.callError);
  }
  if (typeof code === "string") {
    return new CommandError(
      `The authorization server of "${safeLine(name, 80)}" cannot be reached (${code}).`,
      EXIT.callError,
    );
  }
  return thrown;
}
