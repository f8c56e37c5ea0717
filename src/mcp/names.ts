import { createHash } from "node:crypto";

const NAMESPACE = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/;
const PLAIN_NAME = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$/;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Characters of a digest. */
export const DIGEST_LENGTH = 13;

/** What is left of 200 characters for people to read once `__` and the digest have their place. */
const READABLE_LENGTH = 200 - 2 - DIGEST_LENGTH;

/**
 * Gives the name an operation has for the tool of that name: the same where an operation may be called so, else what can be read
 * of it, `__` and a digest. A server can name one tool as another is called here; the importer then refuses the later of the two.
 */
export function toOperationName(toolName: string): string {
  if (PLAIN_NAME.test(toolName)) return toolName;
  return `${readablePart(toolName)}__${nameDigest(toolName)}`;
}

/** Gives 13 characters of `[a-z2-7]`, 65 bits of the SHA-256 of a name; lone surrogates count as themselves. */
export function nameDigest(name: string): string {
  const hash = createHash("sha256").update(Buffer.from(name, "utf16le")).digest();
  let bits = hash.readBigUInt64BE(0);
  let digest = BASE32.charAt((hash[8] as number) >> 3);
  while (digest.length < DIGEST_LENGTH) {
    digest += BASE32.charAt(Number(bits & 31n));
    bits >>= 5n;
  }
  return digest;
}

/** Throws a `TypeError` unless operations can stand under this namespace. */
export function assertNamespace(namespace: unknown): asserts namespace is string {
  if (typeof namespace === "string" && NAMESPACE.test(namespace)) return;
  throw new TypeError(
    'namespace must be 1 to 64 letters, digits, "_" and "-", and not start with "-": it tells the tools of one server from those of others.',
  );
}

/** Splits an id at its first dot; nothing for what is no id. */
export function splitId(id: unknown): { readonly namespace: string; readonly name: string } | undefined {
  if (typeof id !== "string") return undefined;
  const dot = id.indexOf(".");
  const [namespace, name] = [id.slice(0, Math.max(dot, 0)), id.slice(dot + 1)];
  return NAMESPACE.test(namespace) && PLAIN_NAME.test(name) ? { namespace, name } : undefined;
}

function readablePart(name: string): string {
  const readable = name
    .slice(0, READABLE_LENGTH * 2)
    .replace(/[^A-Za-z0-9_./-]+/g, "_")
    .replace(/^[-./_]+/, "")
    .slice(0, READABLE_LENGTH);
  return readable === "" ? "tool" : readable;
}

/** The key of a tool's `_meta` under which Waybill describes the operation behind it. */
export const OPERATION_META_KEY = "dev.waybill/operation";

/** The key of an operation's `_meta` under which an imported tool keeps what operations have no field for. */
export const TOOL_META_KEY = "dev.waybill/tool";

/** The key of a progress notification's `_meta` under which one value of a subscription rides, with its envelope. */
export const YIELD_META_KEY = "dev.waybill/yield";

/** The key of a call's `_meta` that holds its idempotency key: 1 to 255 printable characters. */
export const IDEMPOTENCY_META_KEY = "dev.waybill/idempotencyKey";

/** The key of `_meta` under which a call gives its request id, and its result echoes it: 1 to 200 printable characters. */
export const REQUEST_ID_META_KEY = "dev.waybill/requestId";

/** The key of a call's `_meta` that says `"wrapped"` where the arguments are `{ input }` for an operation that takes anything. */
export const INPUT_META_KEY = "dev.waybill/input";
