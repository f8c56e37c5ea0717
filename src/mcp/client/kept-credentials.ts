import { isPlainObject } from "../../core/json/json-value.ts";
import type { StoredAuthorization, TokenStore } from "./token-store.ts";

/** What one authorization server knows this client by, and gave it. */
export interface IssuerCredentials {
  readonly issuer: string;
  readonly client?: Readonly<Record<string, unknown>> | undefined;
  readonly tokens?: Readonly<Record<string, unknown>> | undefined;
}

/** A field that belongs to no authorization server: a flow under way, or where a client of one's own belongs. */
export type KeptField = "discovery" | "verifier" | "home";

/** One record in a store, changed field by field and in order. */
export interface KeptCredentials {
  get(field: KeptField): Promise<unknown>;
  set(field: KeptField, value: unknown): Promise<void>;
  drop(fields: readonly KeptField[]): Promise<void>;
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
    drop: (fields) =>
      change((record) => Object.fromEntries(Object.entries(record).filter(([key]) => !isAmong(key, fields)))),
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

function isAmong(key: string, fields: readonly string[]): boolean {
  return fields.includes(key);
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
