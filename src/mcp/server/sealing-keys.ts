import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";

/** What a text is sealed for; one that was sealed for one purpose does not open for another. */
export type SealPurpose = "session" | "request-state" | "replica";

/** Characters of a key; shorter ones could be guessed. */
export const LEAST_KEY_CHARACTERS = 32;

/** Characters of a sealed text. A longer one is neither made nor opened. */
export const MAX_SEALED_CHARACTERS = 2_048;

/** The first byte of every sealed text; another one was made by another version, and does not open. */
const VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES;
const CIPHER = "aes-256-gcm";

interface SealingKey {
  /** Tells which key sealed a text. */
  readonly id: Buffer;
  readonly keys: Readonly<Record<SealPurpose, Buffer>>;
}

/**
 * Seals texts that clients keep and send back: nobody without the key can read, make or change one (AES-256-GCM, with a key derived by
 * HKDF-SHA256 for each purpose). The first key seals and every key opens, so that keys can be replaced one after the other.
 */
export class SealingKeys {
  #keys: readonly SealingKey[] = [];

  /** Takes keys without a fault (see `keyFault`). */
  constructor(secrets: string | readonly string[]) {
    this.use([secrets].flat());
  }

  /** Seals with the first of these keys from now on, and opens with each of them and no other. */
  use(secrets: readonly string[]): void {
    this.#keys = secrets.map((secret) => ({
      id: derive(secret, "id").subarray(0, KEY_ID_BYTES),
      keys: {
        session: derive(secret, "session"),
        "request-state": derive(secret, "request-state"),
        replica: derive(secret, "replica"),
      },
    }));
  }

  /** Seals a text; nothing where the result would be too long. */
  seal(purpose: SealPurpose, text: string): string | undefined {
    const written = this.sealBytes(purpose, Buffer.from(text)).toString("base64url");
    return written.length <= MAX_SEALED_CHARACTERS ? written : undefined;
  }

  /** Seals bytes, however many; they open only where the same context is given. */
  sealBytes(purpose: SealPurpose, bytes: Uint8Array, context = ""): Buffer {
    const { id, keys } = this.#keys[0] as SealingKey;
    const head = Buffer.concat([Buffer.of(VERSION), id]);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, keys[purpose], nonce).setAAD(withContext(head, context));
    return Buffer.concat([head, nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** Opens a sealed text; nothing for one that was not sealed here for this purpose, whatever is wrong with it. */
  open(purpose: SealPurpose, sealed: string): string | undefined {
    if (sealed.length > MAX_SEALED_CHARACTERS) return undefined;
    const bytes = Buffer.from(sealed, "base64url");
    // Of all the ways to write these bytes, one counts: two ids of one session would be two sessions.
    if (bytes.toString("base64url") !== sealed) return undefined;
    return this.openBytes(purpose, bytes)?.toString();
  }

  /** Opens sealed bytes; nothing for what was not sealed here for this purpose and in this context, whatever is wrong with it. */
  openBytes(purpose: SealPurpose, bytes: Uint8Array, context = ""): Buffer | undefined {
    const textAt = HEAD_BYTES + NONCE_BYTES;
    const tagAt = bytes.length - TAG_BYTES;
    if (bytes[0] !== VERSION || tagAt < textAt) return undefined;
    const head = Buffer.from(bytes.subarray(0, HEAD_BYTES));
    for (const { id, keys } of this.#keys) {
      if (!id.equals(head.subarray(1))) continue;
      try {
        const decipher = createDecipheriv(CIPHER, keys[purpose], bytes.subarray(HEAD_BYTES, textAt));
        decipher.setAAD(withContext(head, context)).setAuthTag(bytes.subarray(tagAt));
        return Buffer.concat([decipher.update(bytes.subarray(textAt, tagAt)), decipher.final()]);
      } catch {
        // Another key may have the same id.
      }
    }
    return undefined;
  }
}

/** Says what is wrong with keys, in words that follow the name of the option; nothing where they are right. */
export function keyFault(keys: readonly unknown[]): string | undefined {
  if (keys.length === 0) return "must have at least one key";
  const short = keys.find((key) => typeof key !== "string" || key.length < LEAST_KEY_CHARACTERS);
  if (short === undefined) return undefined;
  const least = `must have at least ${LEAST_KEY_CHARACTERS} characters`;
  return typeof short === "string" ? `${least}; it has ${short.length}` : least;
}

/** A name for a caller that says nothing of the caller and is always as long. */
export function ownerDigest(owner: string): string {
  return createHash("sha256").update(owner).digest("base64url").slice(0, 22);
}

function withContext(head: Buffer, context: string): Buffer {
  return context === "" ? head : Buffer.concat([head, Buffer.from(context)]);
}

function derive(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "waybill", purpose, 32));
}
