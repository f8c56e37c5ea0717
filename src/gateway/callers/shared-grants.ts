import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { StoredAuthorization } from "../../http/oauth/oauth-store.ts";
import type { SharedState, StateAccess } from "../state/gateway-state.ts";
import { type StateBounds, StateError, type StateName } from "../state/state-store.ts";
import type { GrantStore } from "./caller-logins.ts";

/** How much of what callers have is kept for all replicas, and for how long where nobody uses it. */
export const SHARED_GRANTS = {
  keepMs: 604_800_000,
  bounds: { records: 100_000, bytes: 268_435_456, ownRecords: 200, ownBytes: 4_194_304 },
} as const satisfies { readonly keepMs: number; readonly bounds: StateBounds };

/** Milliseconds after which the lease of a renewal is anybody's. */
const LEASE_MS = 120_000;
/** Milliseconds between two looks at a lease that another replica has. */
const POLL_MS = 100;
const CIPHER = "aes-256-gcm";
const VERSION = 1;

/** Seals what replicas share with a key of all of them: the first seals, and every one opens. */
export class GrantSeal {
  readonly #keys: readonly Buffer[];
  readonly #macKey: Buffer;

  constructor(secrets: string | readonly string[]) {
    this.#keys = [secrets].flat().map((secret) => derive(secret, "grants"));
    this.#macKey = derive([secrets].flat()[0] ?? "", "returns");
  }

  /** Seals a value for one place alone. */
  seal(place: string, value: unknown): Uint8Array {
    const nonce = randomBytes(12);
    const cipher = createCipheriv(CIPHER, this.#keys[0] as Buffer, nonce).setAAD(Buffer.from(place));
    const data = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), data]);
  }

  /** Opens what was sealed for the place; nothing for anything else. */
  open(place: string, sealed: Uint8Array): Readonly<Record<string, unknown>> | undefined {
    const bytes = Buffer.from(sealed);
    if (bytes[0] !== VERSION || bytes.length < 29) return undefined;
    for (const key of this.#keys) {
      try {
        const decipher = createDecipheriv(CIPHER, key, bytes.subarray(1, 13), { authTagLength: 16 });
        decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(13, 29));
        const text = Buffer.concat([decipher.update(bytes.subarray(29)), decipher.final()]).toString("utf8");
        const value = parseJsonTextOrNone(text);
        return isPlainObject(value) ? value : undefined;
      } catch {
        // It may be that of another key.
      }
    }
    return undefined;
  }

  /** Shows that one of the replicas wrote a text. */
  mac(text: string): string {
    return createHmac("sha256", this.#macKey).update(text).digest("base64url");
  }
}

function derive(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `waybill callers ${purpose}`, 32));
}

/** Where what one caller has for one source is kept for all replicas. */
export interface SharedGrantPlace {
  readonly access: StateAccess;
  readonly seal: GrantSeal;
  /** What tells the source from others. */
  readonly id: readonly string[];
  readonly owner: string;
  /** Where it is kept while there is no store but this process. */
  readonly alone: GrantStore;
}

/**
 * Keeps what a caller has in the state that replicas share, encrypted with a key that they share. One of them at a time changes it; what is
 * used is kept for another week.
 */
export function createSharedGrants({ access, seal, id, owner, alone }: SharedGrantPlace): GrantStore {
  const key = createHash("sha256").update(JSON.stringify(id)).digest("base64url");
  const name: StateName = { collection: "caller-grants", owner, key };
  const lock: StateName = { collection: "caller-grant-locks", owner, key };
  const place = JSON.stringify([owner, key]);
  const reach = async (): Promise<SharedState | undefined> => await orUnavailable(() => access.reach());
  const write = ({ store }: SharedState) => ({
    expiresAt: store.now() + SHARED_GRANTS.keepMs,
    bounds: SHARED_GRANTS.bounds,
  });
  return {
    load: async () => {
      const shared = await reach();
      if (shared === undefined) return await alone.load();
      return await orUnavailable(async () => {
        const found = await shared.store.get(name);
        if (found === undefined) return undefined;
        const isOld = found.expiresAt - shared.store.now() < SHARED_GRANTS.keepMs / 2;
        // The first write wins.
        if (isOld)
          await shared.store.update(name, found.revision, found.value, write(shared)).catch(() => {});
        return seal.open(place, found.value) as StoredAuthorization | undefined;
      });
    },
    save: async (stored) => {
      const shared = await reach();
      if (shared === undefined) return await alone.save(stored);
      await orUnavailable(() => put(shared, { name, value: seal.seal(place, stored) }, write(shared)));
    },
    remove: async () => {
      const shared = await reach();
      if (shared === undefined) return await alone.remove();
      await orUnavailable(async () => {
        for (;;) {
          const found = await shared.store.get(name);
          if (found === undefined || (await shared.store.delete(name, found.revision))) return;
        }
      });
    },
    exclusive: async (run) => {
      const shared = await reach();
      if (shared === undefined) return await alone.exclusive(run);
      const revision = await orUnavailable(() => takeLease(shared, lock));
      try {
        return await run();
      } finally {
        await shared.store.delete(lock, revision).catch(() => {});
      }
    },
    watch: (listener) => {
      let stop = alone.watch(listener);
      let isOver = false;
      access.reach().then(
        (shared) => {
          if (shared === undefined || isOver) return;
          stop();
          stop = shared.store.watch(name, listener);
          // It may have changed before it was watched.
          listener();
        },
        () => {},
      );
      return () => {
        isOver = true;
        stop();
      };
    },
  };
}

async function put(
  { store }: SharedState,
  { name, value }: { readonly name: StateName; readonly value: Uint8Array },
  write: { readonly expiresAt: number; readonly bounds: StateBounds },
): Promise<void> {
  for (;;) {
    const found = await store.get(name);
    const done =
      found === undefined
        ? await store.create(name, value, write)
        : await store.update(name, found.revision, value, write);
    if (done.state === "created" || done.state === "updated") return;
    if (done.state === "full")
      throw new StateError("full", "The shared state has no room for another login.");
  }
}

/** Waits until nobody else renews, or their time is up. */
async function takeLease({ store }: SharedState, name: StateName): Promise<number> {
  const endsAt = store.now() + 2 * LEASE_MS;
  while (store.now() < endsAt) {
    const write = { expiresAt: store.now() + LEASE_MS, bounds: SHARED_GRANTS.bounds };
    const created = await store.create(name, Buffer.from("{}"), write);
    if (created.state === "created") return created.revision;
    if (created.state === "full") break;
    await delay(POLL_MS / 2 + Math.random() * POLL_MS, undefined, { ref: false });
  }
  throw new StateError("slow", "Another replica holds the lease of a login for too long.");
}

/** What the store cannot do now is worth another call. */
async function orUnavailable<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    if (!(thrown instanceof StateError)) throw thrown;
    const message = "What callers have of their own cannot be reached now; try again later.";
    throw new CallError("UNAVAILABLE", message, { cause: thrown, retryable: true, stack: false });
  }
}
