import { createHash } from "node:crypto";
import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import { toWire } from "../../../core/wire/wire.ts";

/** Hashes an input so that equal ones hash alike, whatever the order of their keys. */
export function hashInput(input: unknown): string {
  const text = JSON.stringify(toWire(input), sortKeys);
  return createHash("sha256").update(text).digest("base64url");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  const sorted: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) setOwn(sorted, key, value[key]);
  return sorted;
}
