import { createCipheriv, createDecipheriv, createHash, randomBytes, randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { withFileLock } from "./file-lock.ts";
import type { StoredAuthorization, TokenStore } from "./oauth-store.ts";
import {
  currentKey,
  type KeyPlace,
  keyAt,
  readOwnFile,
  StoreFault,
  type StoreKey,
  type StoreKeyOptions,
} from "./store-key.ts";

/** Bytes of a file with tokens; more are not written, and not read. */
const MOST_TOKEN_BYTES = 1_048_576;

const CIPHER = "aes-256-gcm";

/** Which tokens: those of one source, at one address, for one client. */
export interface EncryptedStoreOptions extends StoreKeyOptions {
  /** What the tokens are for: with other texts they are other tokens. Or the name of a file that was made for such texts. */
  readonly id: readonly string[] | string;
}

/** Tokens of one source in a file, shared with other processes. */
export interface EncryptedStore extends TokenStore {
  readonly path: string;
  /** Whether there is a file, readable or not. */
  readonly isThere: boolean;
  /** What is kept. What cannot be read counts as nothing; a `StoreFault` where the keyring does not answer. */
  load(): Promise<StoredAuthorization | undefined>;
  /** Why what is kept cannot be read, if it cannot. */
  fault(): Promise<StoreFault | undefined>;
  /** Where the key of what is kept is. */
  keyPlace(): Promise<KeyPlace | undefined>;
  /** Runs something that changes what is kept while no other process does. */
  exclusive<T>(run: () => Promise<T>): Promise<T>;
  remove(): Promise<void>;
}

interface Read {
  readonly stamp: string;
  readonly value: StoredAuthorization | undefined;
  readonly place?: KeyPlace | undefined;
  readonly fault?: StoreFault | undefined;
}

/** Keeps tokens in a file that is encrypted (AES-256-GCM), bound to what the tokens are for, and replaced whole. */
export function createEncryptedStore(options: EncryptedStoreOptions): EncryptedStore {
  const { folder, id } = options;
  const path = join(folder, typeof id === "string" ? basename(id) : fileNameOf(id));
  let last: Promise<Read> | undefined;
  const look = async (): Promise<Read> => {
    const stamp = stampOf(path);
    const known = await last?.catch(() => undefined);
    if (known?.stamp === stamp) return known;
    last = readFile(path, stamp, options);
    return await last;
  };
  return {
    path,
    get isThere() {
      return stampOf(path) !== "";
    },
    load: async () => (await look()).value,
    fault: async () =>
      await look().then(
        ({ fault }) => fault,
        (thrown: unknown) => {
          if (thrown instanceof StoreFault) return thrown;
          throw thrown;
        },
      ),
    keyPlace: async () => (await look()).place,
    save: async (stored) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await assertOwnFolder(folder);
      await replaceFile(path, encrypt(stored, await currentKey(options), path));
      last = undefined;
    },
    exclusive: async (run) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return await withFileLock(`${path}.lock`, run);
    },
    remove: async () => {
      await rm(path, { force: true });
      last = undefined;
    },
  };
}

/** A part that people can read, and one that tells it from every other. */
function fileNameOf(id: readonly string[]): string {
  const digest = createHash("sha256").update(JSON.stringify(id)).digest("hex").slice(0, 32);
  return `${filePrefixOf(id)}${digest}${SUFFIX}`;
}

function filePrefixOf([name = ""]: readonly string[]): string {
  return `${name.replace(/[^\w-]/g, "_").slice(0, 64)}.`;
}

const SUFFIX = ".login";

/** Names the files whose texts begin with this one, or with one that reads the same; none where there is no folder. */
export async function storedFiles(folder: string, name: string): Promise<readonly string[]> {
  const prefix = filePrefixOf([name]);
  const found = await readdir(folder).catch(() => []);
  return found.filter((file) => file.startsWith(prefix) && file.endsWith(SUFFIX));
}

/** What tells the content of the file from any before and after. */
function stampOf(path: string): string {
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
  return facts === undefined ? "" : `${facts.dev}:${facts.ino}:${facts.size}:${facts.ctimeNs}`;
}

async function readFile(path: string, stamp: string, options: EncryptedStoreOptions): Promise<Read> {
  try {
    const text = await readOwnFile(path, MOST_TOKEN_BYTES);
    if (text === undefined) return { stamp, value: undefined };
    const sealed = parseSealed(text, path);
    return { stamp, place: sealed.key, value: decrypt(sealed, await keyAt(sealed.key, options), path) };
  } catch (fault) {
    // What the keyring has may be there in a moment; the rest is as good as nothing.
    if (!(fault instanceof StoreFault) || fault.reason === "keyring") throw fault;
    return { stamp, value: undefined, fault };
  }
}

/** What stands in a file. */
interface Sealed {
  readonly key: KeyPlace;
  readonly iv: Buffer;
  readonly tag: Buffer;
  readonly data: Buffer;
}

function parseSealed(text: string, path: string): Sealed {
  const { v, key, iv, tag, data } = asObject(parseJsonTextOrNone(text));
  const isKnown = key === "file" || key === "keychain" || key === "secret-service";
  if (v === 1 && isKnown && typeof iv === "string" && typeof tag === "string" && typeof data === "string") {
    const bytes = [iv, tag, data].map((part) => Buffer.from(part, "base64url")) as [Buffer, Buffer, Buffer];
    if (bytes[0].length === 12 && bytes[1].length === 16)
      return { key, iv: bytes[0], tag: bytes[1], data: bytes[2] };
  }
  throw new StoreFault("damaged", `"${path}" is damaged.`);
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isPlainObject(value) ? value : {};
}

function encrypt(stored: StoredAuthorization, key: StoreKey, path: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv(CIPHER, key.bytes, iv);
  cipher.setAAD(boundTo(path));
  const data = Buffer.concat([cipher.update(JSON.stringify(stored), "utf8"), cipher.final()]);
  const parts = { iv, tag: cipher.getAuthTag(), data };
  const written = Object.entries(parts).map(([name, bytes]) => [name, bytes.toString("base64url")] as const);
  const text = `${JSON.stringify({ v: 1, key: key.place, ...Object.fromEntries(written) })}\n`;
  if (text.length > MOST_TOKEN_BYTES)
    throw new RangeError(`Tokens of more than ${MOST_TOKEN_BYTES} bytes are not kept.`);
  return text;
}

function decrypt({ iv, tag, data }: Sealed, key: StoreKey, path: string): StoredAuthorization {
  let text: string;
  try {
    const decipher = createDecipheriv(CIPHER, key.bytes, iv, { authTagLength: 16 });
    decipher.setAAD(boundTo(path));
    decipher.setAuthTag(tag);
    text = Buffer.concat([decipher.update(data), decipher.final()]).toString("utf8");
  } catch {
    throw new StoreFault("other-key", `"${path}" was changed, or encrypted with another key.`);
  }
  return asObject(parseJsonTextOrNone(text));
}

/** A file that was renamed is that of another source, and cannot be read. */
function boundTo(path: string): Buffer {
  return Buffer.from(`waybill login 1 ${basename(path)}`);
}

async function assertOwnFolder(folder: string): Promise<void> {
  const user = process.getuid?.();
  if (user === undefined) return;
  const { uid, mode } = await stat(folder);
  if (uid !== user) throw new StoreFault("foreign", `The folder "${folder}" belongs to another user.`);
  if ((mode & 0o022) !== 0) throw new StoreFault("foreign", `Others may write into "${folder}".`);
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(text);
      // What a renewal gave may be the only token that works: it has to survive a crash.
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (thrown) {
    await rm(draft, { force: true });
    throw thrown;
  }
}
