import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { isPlainObject } from "../../core/json/json-value.ts";

/** What is kept for one server: tokens, and what this client is known by. */
export type StoredAuthorization = Readonly<Record<string, unknown>>;

/** Where tokens are kept from one run to the next. */
export interface TokenStore {
  load(): Promise<StoredAuthorization | undefined>;
  save(stored: StoredAuthorization): Promise<void>;
}

/** Keeps tokens for as long as the process lives. */
export function createMemoryTokenStore(): TokenStore {
  let held: StoredAuthorization | undefined;
  return {
    load: async () => held,
    save: async (stored) => {
      held = stored;
    },
  };
}

/** Keeps tokens in a file that only its owner may read, and that is replaced whole; one that cannot be read counts as none. */
export function createFileTokenStore(path: string): TokenStore {
  let last: Promise<void> = Promise.resolve();
  return {
    load: () => readStored(path),
    save: (stored) => {
      last = last.catch(() => {}).then(() => replaceFile(path, `${JSON.stringify(stored)}\n`));
      return last;
    },
  };
}

async function readStored(path: string): Promise<StoredAuthorization | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** What one authorization server knows this client by, and gave it. */
interface IssuerCredentials {
  readonly issuer: string;
  readonly client?: Readonly<Record<string, unknown>> | undefined;
  readonly tokens?: Readonly<Record<string, unknown>> | undefined;
}

/** A field that belongs to no authorization server: what was discovered, or where a client of one's own belongs. */
type KeptField = "discovery" | "home";

/** One record in a store, changed field by field and in order. */
export interface KeptCredentials {
  get(field: KeptField): Promise<unknown>;
  set(field: KeptField, value: unknown): Promise<void>;
  /** Those of an authorization server, by default of the one whose tokens are in use. */
  of(issuer: string | undefined): Promise<IssuerCredentials | undefined>;
  /** Keeps what is given beside the rest; tokens are in use from then on. */
  keep(credentials: IssuerCredentials): Promise<void>;
  /** Forgets a part of an authorization server, or of all of them. */
  forget(parts: readonly ("client" | "tokens")[], issuer: string | undefined): Promise<void>;
}

/** Authorization servers remembered for one MCP server, which names as many as it likes; those not used for longest go first. */
const MAX_ISSUERS = 8;

/** Keeps credentials apart by authorization server, so that none ever sees those of another. */
export function createKeptCredentials(store: TokenStore): KeptCredentials {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const next = last.catch(() => {}).then(run);
    last = next;
    return next;
  };
  const read = (): Promise<StoredAuthorization> => inTurn(async () => (await store.load()) ?? {});
  const change = (edit: (record: StoredAuthorization) => StoredAuthorization) =>
    inTurn(async () => await store.save(edit({ ...(await store.load()) })));
  return {
    get: async (field) => (await read())[field],
    set: (field, value) => change((record) => ({ ...record, [field]: value })),
    of: async (issuer) => {
      const record = await read();
      return find(record, issuer ?? record["current"]);
    },
    keep: (credentials) => change((record) => withCredentials(record, credentials)),
    forget: (parts, issuer) =>
      change((record) => ({
        ...record,
        issuers: issuersOf(record).map((known) => {
          if (issuer !== undefined && known.issuer !== issuer) return known;
          return { ...known, ...Object.fromEntries(parts.map((part) => [part, undefined])) };
        }),
      })),
  };
}

/** The last used stands last. */
function withCredentials(record: StoredAuthorization, given: IssuerCredentials): StoredAuthorization {
  const others = issuersOf(record).filter(({ issuer }) => issuer !== given.issuer);
  const issuers = [...others, { ...find(record, given.issuer), ...given }].slice(-MAX_ISSUERS);
  return { ...record, issuers, ...(given.tokens === undefined ? {} : { current: given.issuer }) };
}

function find(record: StoredAuthorization, issuer: unknown): IssuerCredentials | undefined {
  return issuersOf(record).find((known) => known.issuer === issuer);
}

/** A store is written by others as well: what is no credentials is left out. */
function issuersOf(record: StoredAuthorization): readonly IssuerCredentials[] {
  const issuers = record["issuers"];
  return Array.isArray(issuers) ? issuers.filter(isCredentials) : [];
}

function isCredentials(value: unknown): value is IssuerCredentials {
  if (!isPlainObject(value) || typeof value["issuer"] !== "string") return false;
  return [value["client"], value["tokens"]].every((part) => part === undefined || isPlainObject(part));
}
