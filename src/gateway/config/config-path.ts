import { isSecretField } from "../../core/secrets/secret-names.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { shortText } from "../../core/text/truncate-text.ts";

/** Bounds of a config; more is a mistake. */
export const CONFIG_LIMITS = {
  /** Bytes of the file. */
  bytes: 4_194_304,
  /** Nested objects and lists. */
  depth: 64,
  /** MCP servers and HTTP APIs in all. */
  sources: 1_000,
  /** Bytes of a file that is referred to. */
  referencedBytes: 65_536,
  /** Mistakes that are listed. */
  issues: 20,
} as const;

/** The fewest characters of a token that callers show. */
export const LEAST_TOKEN_CHARACTERS = 16;

/** The fewest characters of a secret that tokens are signed with. */
export const LEAST_SECRET_CHARACTERS = 32;

/** Where a value stands in a config. */
export type ConfigPath = readonly (string | number)[];

const PLAIN_NAME = /^[A-Za-z_$][\w$-]*$/;
const MOST_SHOWN = 60;

/** Writes a path the way people do: `mcpServers.files.args[1]`. */
export function showPath(path: ConfigPath): string {
  return path.reduce<string>((shown, part) => {
    if (typeof part === "number") return `${shown}[${part}]`;
    if (!PLAIN_NAME.test(part)) return `${shown}[${quoteText(part)}]`;
    return shown === "" ? part : `${shown}.${part}`;
  }, "");
}

/** The same as a key that no two paths share. */
export function pathKey(path: ConfigPath): string {
  return JSON.stringify(path);
}

/** Quotes a text for a message: on one line, not too long, with nothing a terminal acts on. */
export function quoteText(text: string): string {
  const shown = shortText(text, MOST_SHOWN);
  return JSON.stringify(cleanText(shown).text);
}

/** Says what a value is; of a text that may be a secret only that it is one. */
export function showValue(value: unknown, path: ConfigPath, isSecret = false): string {
  if (typeof value === "string") return isSecret || isSecretField(path) ? "a text" : quoteText(value);
  if (value === null || typeof value === "number" || typeof value === "boolean") {
    return isSecretField(path) && value !== null ? `a ${typeof value}` : String(value);
  }
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
