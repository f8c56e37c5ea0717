import { createHash, randomBytes } from "node:crypto";
import type { Identity } from "../core/access/identity.ts";
import { CallError } from "../core/errors/errors.ts";
import { LONGEST_DELAY } from "../core/execution/cancellation.ts";
import { toWire } from "../core/wire/wire.ts";

/** Claims that change with every token of the same caller. */
const OF_ONE_TOKEN = new Set(["at_hash", "auth_time", "c_hash", "exp", "iat", "jti", "nbf", "nonce", "sid"]);

/** Tells callers apart by all they may do and are known by, however often they renew their token. */
export function callerDigest(identity: Identity | undefined): string {
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

/** Claims that cannot be written cannot be compared either: a caller who has some counts as new each time. */
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

/** Tells whether the credential of a caller has expired. */
export function isExpired(identity: Identity | undefined): boolean {
  return identity?.expiresAt !== undefined && identity.expiresAt <= Date.now();
}

/** Calls `end` once an identity has expired, unless the function it returns is called before. */
export function whenExpired(identity: Identity | undefined, end: () => void): () => void {
  const { expiresAt } = identity ?? {};
  if (expiresAt === undefined) return () => {};
  let timer: ReturnType<typeof setTimeout>;
  const wait = (): void => {
    timer = setTimeout(
      () => {
        if (isExpired(identity)) end();
        else wait();
      },
      Math.min(Math.max(expiresAt - Date.now(), 0), LONGEST_DELAY),
    );
    timer.unref?.();
  };
  wait();
  return () => clearTimeout(timer);
}

/** The error that ends what was opened with a token that has expired. */
export function expired(): CallError {
  const message = "The token that this was opened with has expired; open it again with a new one.";
  return new CallError("UNAUTHENTICATED", message, { stack: false });
}
