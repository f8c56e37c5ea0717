import { asJson } from "../../core/json/as-json.ts";
import { escapeHidden } from "../../core/text/clean-text.ts";
import type { Style } from "./style.ts";

/** Writes a value as JSON that shows nothing but what is in it: whatever a terminal acts on stands there as `\uXXXX`. */
export function toSafeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value === undefined ? null : asJson(value), undefined, indent);
  return escapeHidden(text ?? "null");
}

const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;

/** Paints JSON text. */
export function paintJson(json: string, style: Style): string {
  return json.replace(TOKEN, (token: string, colon: string | undefined) => {
    if (colon !== undefined) return `${style.cyan(token.slice(0, -colon.length))}${colon}`;
    if (token.startsWith('"')) return style.green(token);
    return token === "null" ? style.dim(token) : style.yellow(token);
  });
}
