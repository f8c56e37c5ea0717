import { asJson } from "../../core/json/as-json.ts";
import type { Style } from "./style.ts";

/** What JSON may hold as it is, and terminals act on or people do not see: DEL and C1, line separators, bidi controls, tags. */
const TO_ESCAPE =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

/** Writes a value as JSON that shows nothing but what is in it: whatever a terminal acts on stands there as `\uXXXX`. */
export function toSafeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value === undefined ? null : asJson(value), undefined, indent);
  return (text ?? "null").replace(TO_ESCAPE, escaped);
}

function escaped(found: string): string {
  return Array.from({ length: found.length }, (_, at) => {
    return `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }).join("");
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
