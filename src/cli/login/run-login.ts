import { randomInt } from "node:crypto";
import { createInterface } from "node:readline";
import { safeLine } from "../../core/text/clean-text.ts";
import { findLoginTarget } from "../../gateway/sources/login-target.ts";
import { type LoginWay, logIn, loginFacts, logOut } from "../../http/oauth/login.ts";
import { listenForRedirect, pastedMisfit } from "../../http/oauth/login-redirect.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { createPastedCommand } from "../pasted-command.ts";
import type { SourceFlags } from "../session/session.ts";
import { openBrowser } from "../terminal/open-browser.ts";
import { findLogin, toLoginFailure } from "./find-login.ts";

/** The flags of `waybill login`. */
export interface LoginFlags extends Pick<SourceFlags, "config" | "mcp"> {
  readonly paste?: boolean;
  readonly device?: boolean;
  /** False with `--no-open`. */
  readonly open?: boolean;
  readonly timeout?: number;
}

/** Milliseconds that a person has to come back. */
const PATIENCE_MS = 300_000;
/** Addresses that may be pasted before the login is given up. */
const MOST_PASTED = 5;

/** Has the person log in to a source, and keeps the tokens. */
export async function runLogin(io: Io, name: string | undefined, flags: LoginFlags): Promise<number> {
  if (flags.paste === true && flags.device === true)
    throw new CommandError("Give --paste or --device, not both.");
  const found = await findLogin(io, name, flags);
  const { login } = found;
  const { kept } = login;
  const patience = AbortSignal.timeout(flags.timeout ?? PATIENCE_MS);
  const signal = io.signal === undefined ? patience : AbortSignal.any([io.signal, patience]);
  const before = await kept.load().catch(() => undefined);
  const opened = await openWay(io, flags, {
    signal,
    own: login.redirectUrl,
  }).catch((thrown: unknown) => {
    throw toLoginFailure(thrown, login.name);
  });
  try {
    const target = await findLoginTarget(login, found.loaded);
    const stored = await logIn({ ...target, client: login.client, way: opened.way, before });
    await kept.exclusive(() => kept.save(stored));
  } catch (thrown) {
    if (io.signal?.aborted !== true && patience.aborted) {
      const again = createPastedCommand(io, flags)(`login ${login.name}`);
      throw new CommandError(
        `Nobody came back from the login in time. Try again with: ${again} (--paste or --device where the browser is on another machine).`,
        EXIT.callError,
      );
    }
    throw toLoginFailure(thrown, login.name);
  } finally {
    await opened.close();
  }
  const facts = await loginFacts(kept);
  const scope = facts?.scope === undefined ? "" : `, for ${safeLine(facts.scope, 300)}`;
  io.stdout.write(`Logged in to "${login.name}" at ${safeLine(facts?.issuer ?? "", 300)}${scope}.\n`);
  if (facts?.isRenewable !== true && !io.quiet) {
    io.stderr.write("waybill: The login cannot be renewed; it ends with its token.\n");
  }
  return EXIT.ok;
}

interface OpenedWay {
  readonly way: LoginWay;
  close(): Promise<void>;
}

interface WaySettings {
  readonly signal: AbortSignal;
  /** The address that the config names. */
  readonly own: string | undefined;
}

async function openWay(io: Io, flags: LoginFlags, { signal, own }: WaySettings): Promise<OpenedWay> {
  if (flags.device === true) {
    const show = ({
      url,
      code,
      wholeUrl,
    }: {
      url: string;
      code: string;
      wholeUrl?: string | undefined;
    }): void => {
      say(io, `Open this address on any device:\n\n  ${url}\n\nand enter the code ${safeLine(code, 40)}`);
      if (wholeUrl !== undefined) say(io, `or open ${safeLine(wholeUrl, 2_000)}`);
    };
    return { way: { show, signal }, close: async () => {} };
  }
  if (flags.paste === true) {
    const redirectUrl = own ?? `http://127.0.0.1:${randomInt(49_152, 65_536)}/callback`;
    return {
      way: { redirectUrl, send: (url) => askForAddress(io, url, { redirectUrl, signal }) },
      close: async () => {},
    };
  }
  const redirect = await listenForRedirect(own);
  const send = async (url: URL): Promise<string> => {
    const coming = redirect.wait(url.searchParams.get("state") ?? "", signal);
    tellAddress(io, url);
    if (flags.open !== false) {
      const why = await openBrowser(url.href, io.env);
      if (why !== undefined) say(io, `The browser did not open (${why}); open the address yourself.`);
    }
    return await coming;
  };
  return { way: { redirectUrl: redirect.url, send }, close: () => redirect.close() };
}

function tellAddress(io: Io, url: URL): void {
  say(io, `Open this address in a browser, and log in:\n\n  ${url.href}\n`);
}

/** Reads the address that the browser ended on, until it is the one that is waited for. */
function askForAddress(
  io: Io,
  url: URL,
  { redirectUrl, signal }: { readonly redirectUrl: string; readonly signal: AbortSignal },
): Promise<string> {
  tellAddress(io, url);
  say(
    io,
    `At the end the browser is sent to an address that begins with ${redirectUrl}. Nobody answers there. Paste that address here:`,
  );
  const lines = createInterface({ input: io.stdin });
  const state = url.searchParams.get("state") ?? "";
  let left = MOST_PASTED;
  return new Promise<string>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    lines.on("line", (line) => {
      const text = line.trim();
      if (text === "") return;
      const misfit = pastedMisfit(text, redirectUrl, state);
      if (misfit === undefined) return resolve(text);
      left -= 1;
      if (left === 0) reject(new CommandError(`${misfit} The login is given up.`, EXIT.callError));
      else say(io, misfit);
    });
    lines.on("close", () => reject(new CommandError("No address was pasted.", EXIT.callError)));
  }).finally(() => lines.close());
}

function say(io: Io, text: string): void {
  io.stderr.write(`${text}\n`);
}

/** Ends the login of a source. */
export async function runLogout(io: Io, name: string | undefined, flags: LoginFlags): Promise<number> {
  const found = await findLogin(io, name, flags);
  const { login } = found;
  const { fault, server } = await readKept(found.login);
  if (server === undefined) {
    const isThere = login.kept.isThere;
    await login.kept.remove();
    const told = isThere
      ? `What was kept could not be read, and is removed. ${fault ?? ""}`
      : "Nobody is logged in to it.";
    io.stdout.write(`${login.name}: ${told}\n`);
    return EXIT.ok;
  }
  const { createGuardedFetch } = await import("../../http/oauth/guarded-fetch.ts");
  const fetch = createGuardedFetch(server, [login.client.issuer]);
  const outcome = await logOut(login.kept, { serverUrl: server, fetch });
  if (outcome === "failed") {
    io.stdout.write(`Logged out of "${login.name}" here.\n`);
    io.stderr.write(
      "waybill: The authorization server did not revoke the tokens; they end by themselves, or where you manage your account.\n",
    );
    return EXIT.callError;
  }
  const how =
    outcome === "revoked" ? "; its tokens are revoked" : "; its authorization server revokes no tokens";
  io.stdout.write(`Logged out of "${login.name}"${how}.\n`);
  return EXIT.ok;
}

async function readKept({ kept }: { readonly kept: Awaited<ReturnType<typeof findLogin>>["login"]["kept"] }) {
  const stored = await kept.load().catch(() => undefined);
  const fault = (await kept.fault())?.message;
  const server = stored?.["server"];
  return { fault, server: typeof server === "string" ? new URL(server) : undefined };
}
