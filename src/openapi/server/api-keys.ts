import { createHash } from "node:crypto";
import { HeldIdentity, type Identity } from "../../core/access/identity.ts";

/** Which API keys are believed, and whose they are. */
export interface ApiKeyAuth {
  /** The header a key is sent in. @default "x-api-key" */
  readonly header?: string | undefined;
  /** Identities by key, or what finds one; nothing, or `null`, is a key nobody knows. */
  readonly keys:
    | Readonly<Record<string, Identity>>
    | ((key: string) => Identity | null | undefined | Promise<Identity | null | undefined>);
}

/** Finds whose an API key is. */
export interface ApiKeyCheck {
  /** In lower case. */
  readonly header: string;
  find(key: string): Promise<Identity | undefined>;
}

const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const KEY_CHARACTERS = 4_096;

/** Creates what finds identities by key; keys that cannot be sent, or are too easily guessed, are a `TypeError`. */
export function createApiKeyCheck(auth: ApiKeyAuth): ApiKeyCheck {
  const header = String(auth.header ?? "x-api-key").toLowerCase();
  if (!HEADER.test(header)) throw new TypeError("auth.apiKeys.header must be the name of a header.");
  const find = typeof auth.keys === "function" ? auth.keys : fromRecord(auth.keys);
  return {
    header,
    async find(key) {
      if (key === "" || key.length > KEY_CHARACTERS) return undefined;
      const identity = await find(key);
      return identity === undefined || identity === null ? undefined : HeldIdentity.of(identity);
    },
  };
}

/** Keys are looked up by their hash: how long that takes says nothing about how much of a key was right. */
function fromRecord(keys: Readonly<Record<string, Identity>>): (key: string) => Identity | undefined {
  if (typeof keys !== "object" || keys === null) {
    throw new TypeError("auth.apiKeys.keys must be identities by key, or a function that finds one.");
  }
  const known = new Map<string, Identity>();
  for (const [key, identity] of Object.entries(keys)) {
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new TypeError("auth.apiKeys.keys holds a key that is empty or cannot be sent in a header.");
    }
    known.set(hash(key), hold(identity));
  }
  return (key) => known.get(hash(key));
}

function hold(identity: Identity): Identity {
  try {
    return HeldIdentity.of(identity);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : "";
    throw new TypeError(`auth.apiKeys.keys holds an identity that is none. ${said}`, { cause });
  }
}

function hash(key: string): string {
  return createHash("sha256").update(key).digest("base64");
}
