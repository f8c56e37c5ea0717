import { createHash, randomBytes } from "node:crypto";
import type { Identity } from "../core/access/identity.ts";
import { toWire } from "../core/wire/wire.ts";

/** Claims that change with every token of the same caller. */
const OF_ONE_TOKEN = new Set(["at_hash", "auth_time", "c_hash", "exp", "iat", "jti", "nbf", "nonce", "sid"]);

/** Tells callers apart by all they may do and are known by, however often they renew their token. */
export function digestOf(identity: Identity | undefined): string {
  if (identity === undefined) return "";
  const { subject, scopes = [], tier, resources = {}, claims = {} } = identity;
  const lasting = Object.entries(claims).filter(([name]) => !OF_ONE_TOKEN.has(name));
  const all = [
    subject,
    [...new Set(scopes)].sort(),
    tier,
    sorted(Object.entries(resources)),
    sorted(lasting),
  ];
  return createHash("sha256").update(write(all)).digest("base64");
}

/** Claims that cannot be written cannot be compared either: whoever has some is nobody seen before. */
function write(all: readonly unknown[]): string | Uint8Array {
  try {
    return JSON.stringify(toWire(all));
  } catch {
    return randomBytes(32);
  }
}

function sorted<T>(entries: readonly (readonly [string, T])[]): readonly (readonly [string, T])[] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}
