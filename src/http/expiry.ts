import type { Identity } from "../core/access/identity.ts";
import { CallError } from "../core/errors/errors.ts";

/** The longest time a timer takes, in milliseconds. */
const LONGEST_MS = 2_147_483_647;

/** Tells whether what somebody showed who they are with has run out. */
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
      Math.min(Math.max(expiresAt - Date.now(), 0), LONGEST_MS),
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
