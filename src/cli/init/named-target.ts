import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { safeLine } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { McpServerConfig } from "../../gateway/config/gateway-config.ts";
import { parseReferences } from "../../gateway/config/resolve-config.ts";
import { CommandError } from "../io.ts";
import { splitCommandLine } from "../session/target-config.ts";
import type { NamedTarget } from "./init-answers.ts";

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ADDRESS = /^https?:\/\//i;

/** Reads `name=target` of a flag. */
export function parseNamedTarget(flag: string, text: string): NamedTarget {
  const end = text.indexOf("=");
  const name = text.slice(0, Math.max(end, 0)).trim();
  const target = text.slice(end + 1).trim();
  if (end === -1 || nameMistake(name) !== undefined || target === "") {
    throw new CommandError(
      `${flag} takes a name (letters, digits, _ and -), "=", and what it stands for; it is "${safeLine(text, 80)}".`,
    );
  }
  return { name, target };
}

/** Says what is wrong with the name of a source. */
export function nameMistake(name: string): string | undefined {
  return NAME.test(name) ? undefined : "A name is made of up to 64 letters, digits, _ and -.";
}

/** Says what is wrong with the place of a document. */
export function documentMistake(document: string, cwd: string): string | undefined {
  if (document.trim() === "") return "Give a path or a URL.";
  if (ADDRESS.test(document) || existsSync(resolve(cwd, document))) return undefined;
  return `There is no file ${safeLine(document, 200)}.`;
}

/** Says what is wrong with a command line or address. */
export function serverMistake(target: string): string | undefined {
  if (target.trim() === "") return "Give a command line or a URL.";
  if (ADDRESS.test(target) && parseUrl(target) === undefined) return "This is not a URL.";
  try {
    splitCommandLine(target);
    parseReferences(target);
    return undefined;
  } catch (thrown) {
    const { message } = thrown as Error;
    return thrown instanceof CommandError ? message : `It ${message}.`;
  }
}

/** A server as the config holds it, references as they were written; the target must have been looked at. */
export function toServerConfig(target: string): McpServerConfig {
  if (ADDRESS.test(target)) return { type: "http", url: target };
  const [command = "", ...args] = splitCommandLine(target);
  return args.length === 0 ? { command } : { command, args };
}

/** A name made of where a document or server is found, for people to accept or change. */
export function suggestName(target: string, taken: readonly string[]): string {
  const words = ADDRESS.test(target) ? [hostOf(target)] : splitCommandLine(target);
  const told = words.filter(
    (word) => !/^-/.test(word) && !/^(npx|bunx|uvx|node|python3?|docker|run)$/.test(word),
  );
  const last =
    (told[0] ?? "source")
      .replace(/[\\/]+$/, "")
      .split(/[\\/]/)
      .at(-1) ?? "";
  const plain = last
    .replace(/\.(json|ya?ml|m?[jt]s|py)$/i, "")
    .replace(/^(mcp-)?server-/, "")
    .replace(/@.*$/, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  return freeName(plain === "" ? "source" : plain, (name) => taken.includes(name), "-");
}

function hostOf(address: string): string {
  const { hostname } = parseUrl(address) !== undefined ? new URL(address) : { hostname: "source" };
  const parts = hostname.split(".").filter((part) => !/^(www|api|mcp)$/.test(part));
  return /^[0-9.]+$/.test(hostname) ? "source" : (parts[0] ?? "source");
}

/** The name, or the first of `name-2`, `name-3` … that nobody has. */
export function freeName(name: string, isTaken: (name: string) => boolean, join: string): string {
  for (let count = 1; ; count++) {
    const tried = count === 1 ? name : `${name}${join}${count}`;
    if (!isTaken(tried)) return tried;
  }
}
