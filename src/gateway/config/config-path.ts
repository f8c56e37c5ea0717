import { isSecretField } from "../../core/secrets/secret-names.ts";
import { cleanText } from "../../core/text/clean-text.ts";

/** Where a value stands in a config. */
export type ConfigPath = readonly (string | number)[];

const PLAIN_NAME = /^[A-Za-z_$][\w$-]*$/;
const MOST_SHOWN = 60;

/** Writes a path the way people do: `mcpServers.files.args[1]`. */
export function showPath(path: ConfigPath): string {
  return path.reduce<string>((shown, part) => {
    if (typeof part === "number") return `${shown}[${part}]`;
    if (!PLAIN_NAME.test(part)) return `${shown}[${quote(part)}]`;
    return shown === "" ? part : `${shown}.${part}`;
  }, "");
}

/** The same as a key that no two paths share. */
export function pathKey(path: ConfigPath): string {
  return JSON.stringify(path);
}

/** Quotes a text for a message: on one line, not too long, with nothing a terminal acts on. */
export function quote(text: string): string {
  const shown = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
  return JSON.stringify(cleanText(shown).text);
}

/** Says what a value is; of a text that may be a secret only that it is one. */
export function showValue(value: unknown, path: ConfigPath, isSecret = false): string {
  if (typeof value === "string") return isSecret || isSecretField(path) ? "a text" : quote(value);
  if (value === null || typeof value === "number" || typeof value === "boolean") {
    return isSecretField(path) && value !== null ? `a ${typeof value}` : String(value);
  }
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
