import { isPlainObject, setOwn } from "../../core/json/json-value.ts";

/**
 * Takes secrets out of JSON text, and leaves JSON. A secret that is found may stand where no text is, in the middle of a number of ours,
 * so then it is taken out of each text by itself, and of numbers that are nothing else.
 */
export function maskJson(text: string, mask: (text: string) => string): string {
  if (mask(text) === text) return text;
  return JSON.stringify(maskValue(JSON.parse(text), mask));
}

function maskValue(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value === "number") {
    const masked = mask(String(value));
    return /^\*+$/.test(masked) ? masked : value;
  }
  if (Array.isArray(value)) return value.map((item) => maskValue(item, mask));
  if (!isPlainObject(value)) return value;
  const masked: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) setOwn(masked, mask(key), maskValue(member, mask));
  return masked;
}
