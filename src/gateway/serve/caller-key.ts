import type { Identity } from "../../core/access/identity.ts";

const keys = new WeakMap<Identity, string>();

/** Remembers how a caller was recognised: two of one name need not be the same. */
export function markCaller(identity: Identity, by: string): void {
  keys.set(identity, `${by}:${identity.subject}`);
}

/** Gives what tells a caller from all others; nothing for one who is anonymous. */
export function callerKey(identity: Identity | undefined): string | undefined {
  return identity && (keys.get(identity) ?? `other:${identity.subject}`);
}
