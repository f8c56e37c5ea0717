import { parseEnvFile } from "../../gateway/config/env-file.ts";

/** The file that secrets go to, beside the config. */
export const ENV_FILE_NAME = ".env.waybill";

/** Adds variables at the end of an env file's text; what is there stays, letter for letter. */
export function withEntries(text: string, entries: ReadonlyMap<string, string>): string {
  const known = parseEnvFile(text);
  const lines = [...entries].filter(([name]) => !known.has(name)).map(([name, value]) => toLine(name, value));
  if (lines.length === 0) return text;
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  return `${text}${gap}${lines.join("")}`;
}

/** Single quotes keep everything as it is, for shells too; what they cannot hold is escaped. */
function toLine(name: string, value: string): string {
  if (!/['\r\n]/.test(value)) return `${name}='${value}'\n`;
  const escaped = value
    .replace(/[\\"$]/g, "\\$&")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r");
  return `${name}="${escaped}"\n`;
}
