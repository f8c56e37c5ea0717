import { dirname } from "node:path";
import { safeLine, shellWord } from "../../core/text/clean-text.ts";
import { loginsOf, type SourceLogin } from "../../gateway/sources/source-login.ts";
import { type LoginFacts, loginFacts } from "../../http/oauth/login.ts";
import { KEY_PLACES, type KeyPlace, type StoreFault } from "../../http/oauth/store-key.ts";
import { EXIT, type Io } from "../io.ts";
import { createPastedCommand, type PastedCommand } from "../pasted-command.ts";
import { readTarget, type SourceFlags } from "../session/session.ts";
import { createStyle, toSafeJson } from "../terminal/style.ts";
import { type Cell, renderTable } from "../terminal/table.ts";

/** The flags of `waybill auth status`. */
export interface AuthFlags extends Pick<SourceFlags, "config" | "mcp"> {
  readonly json?: boolean;
}

/** How the login of one source is doing; nothing in it is a secret. */
interface LoginStatus extends Partial<LoginFacts> {
  readonly name: string;
  /** `none`: nobody is logged in; `unreadable`: what is kept cannot be used. */
  readonly state: "logged-in" | "none" | "lacks-scope" | "unreadable";
  readonly reason?: string;
  /** Where the key is that its tokens are encrypted with. */
  readonly key?: KeyPlace;
  readonly command: string;
}

/** Says of every source that a person may log in to how that is; no server is asked. */
export async function runAuthStatus(io: Io, flags: AuthFlags): Promise<number> {
  const { loaded } = await readTarget(io, flags);
  const logins = loginsOf(loaded);
  const paste = createPastedCommand(io, flags);
  const found = await Promise.all(logins.map((login) => statusOf(login, paste)));
  const [first] = logins;
  const folder = first === undefined ? undefined : dirname(first.kept.path);
  if (flags.json === true) {
    io.stdout.write(`${toSafeJson({ logins: found, folder }, 2)}\n`);
    return EXIT.ok;
  }
  if (folder === undefined) {
    io.stdout.write("No source of the config has a login.\n");
    return EXIT.ok;
  }
  io.stdout.write(`${await statusTable(io, found)}\n\n${whereKept(found, folder)}\n`);
  return EXIT.ok;
}

async function statusOf({ name, kept }: SourceLogin, paste: PastedCommand): Promise<LoginStatus> {
  const command = paste(`login ${shellWord(name)}`);
  const fault: StoreFault | undefined = await kept.fault();
  if (fault !== undefined) return { name, state: "unreadable", reason: fault.message, command };
  const facts = await loginFacts(kept);
  if (facts === undefined) return { name, state: "none", command };
  const key = await kept.keyPlace();
  const state = facts.wanted === undefined ? "logged-in" : "lacks-scope";
  return { name, state, ...facts, ...(key !== undefined && { key }), command };
}

async function statusTable(io: Io, found: readonly LoginStatus[]): Promise<string> {
  const style = createStyle(io.stdout, io.env);
  const rows = found.map((status): readonly Cell[] => [
    status.name,
    status.state === "logged-in"
      ? { text: "logged in", paint: style.green }
      : { text: TEXTS[status.state], paint: style.yellow },
    safeLine(status.issuer ?? "", 200),
    safeLine(status.scope ?? "", 200),
    endOf(status),
    nextOf(status),
  ]);
  const head = ["SOURCE", "LOGIN", "ISSUER", "SCOPES", "TOKEN ENDS", "WHAT TO DO"];
  return renderTable(rows, { head, stream: io.stdout, env: io.env, whole: 1 });
}

const TEXTS = {
  none: "not logged in",
  "lacks-scope": "lacks a scope",
  unreadable: "cannot be read",
} as const;

function endOf({ expiresAt, isRenewable }: LoginStatus): string {
  if (expiresAt === undefined) return isRenewable === true ? "renewed" : "";
  const end = new Date(expiresAt).toISOString().slice(0, 16).replace("T", " ");
  return `${end}${isRenewable === true ? ", renewed" : ""}`;
}

function nextOf({ state, reason, wanted, command }: LoginStatus): string {
  if (state === "logged-in") return "";
  const why = reason ?? (wanted === undefined ? "" : `It needs ${safeLine(wanted, 200)}.`);
  return `${why === "" ? "" : `${why} `}${command}`;
}

function whereKept(found: readonly LoginStatus[], folder: string): string {
  const places = [...new Set(found.flatMap(({ key }) => key ?? []))].map((key) => KEY_PLACES[key]);
  const key =
    places.length === 0
      ? "the key is made at the first login"
      : `the key is kept by the ${places.join(" and the ")}`;
  return `Tokens are kept in ${safeLine(folder, 500)}, encrypted with AES-256-GCM; ${key}.`;
}
