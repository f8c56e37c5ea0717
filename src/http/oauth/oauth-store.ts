import { randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { JWK } from "jose";
import { isPlainObject } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LOOPBACK } from "../address-guard.ts";
import { createDpopKey, type DpopKey } from "./dpop-key.ts";
import { SignInError } from "./oauth-authorizer.ts";
import type { DiscoveredServer, Fetch } from "./oauth-discovery.ts";
import {
  ASSERTION_GRANT,
  createGrantClient,
  type ExchangedToken,
  type GrantClientOptions,
  proveByKey,
} from "./token-exchange.ts";

/** What a person's consent came back with. */
export interface OAuthGrant {
  readonly code: string;
  readonly iss?: string | undefined;
}

/** Tokens as an authorization server gave them. */
export interface OAuthTokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string | undefined;
  /** Seconds. */
  readonly expires_in?: number | undefined;
  /** Unix epoch milliseconds, worked out when they were given. */
  readonly expires_at?: number | undefined;
  readonly scope?: string | undefined;
  /** The authorization server that gave them. */
  readonly issuer?: string | undefined;
}

/** What an authorization server knows a client by. */
export interface OAuthClientInformation {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly token_endpoint_auth_method?: string | undefined;
  /** The authorization server that knows it. */
  readonly issuer?: string | undefined;
}

/** What a client says of itself when it is registered (RFC 7591). */
export interface OAuthClientMetadata {
  readonly redirect_uris: readonly string[];
  readonly client_name?: string | undefined;
  readonly grant_types?: readonly string[] | undefined;
  readonly token_endpoint_auth_method?: string | undefined;
  readonly application_type?: string | undefined;
  readonly scope?: string | undefined;
}

/** The authorization server that credentials belong to. */
export interface OAuthIssuer {
  readonly issuer: string;
}

/** Where a client that needs no consent gets its tokens, and for what. */
export interface GrantPlace extends OAuthIssuer {
  readonly resource: string | undefined;
  /** Sends requests to authorization servers, as far as they may be asked. */
  readonly fetch: Fetch;
}

/** A person who is logged in at an identity provider, as which a client gets tokens elsewhere (MCP's enterprise-managed authorization). */
export interface IdentityAssertion extends Omit<GrantClientOptions, "fetch"> {
  /** What the identity provider gave at the login, asked for whenever tokens are needed. */
  readonly token: string | (() => string | Promise<string>);
  /** What it is. @default "id" */
  readonly kind?: ExchangedToken | undefined;
}

/** What signing in keeps and asks for; `createOAuthStore` makes one. */
export interface OAuthStore {
  /** Without it the client stands for itself. */
  readonly redirectUrl: string | URL | undefined;
  readonly clientMetadataUrl?: string | undefined;
  readonly clientMetadata: OAuthClientMetadata;
  /** The authorization server that the user named: alone it may be at a private address, where the server is not. */
  readonly issuer?: string | undefined;
  /** The identity provider that the user named; it may be at a private address too. */
  readonly identityProvider?: string | undefined;
  state?(): string | Promise<string>;
  clientInformation(
    at?: OAuthIssuer,
  ): OAuthClientInformation | undefined | Promise<OAuthClientInformation | undefined>;
  /** Without it no client is registered. */
  saveClientInformation?(client: OAuthClientInformation, at?: OAuthIssuer): void | Promise<void>;
  /** The tokens of an authorization server, by default those in use. */
  tokens(at?: OAuthIssuer): OAuthTokens | undefined | Promise<OAuthTokens | undefined>;
  saveTokens(tokens: OAuthTokens, at?: OAuthIssuer): void | Promise<void>;
  /** Where the metadata of the server was found that needs tokens. */
  discoveryState?(): OAuthDiscovery | undefined | Promise<OAuthDiscovery | undefined>;
  saveDiscoveryState?(discovery: OAuthDiscovery): void | Promise<void>;
  /** Forgets what an authorization server no longer takes, by default of all of them. */
  invalidateCredentials?(
    what: "all" | "client" | "tokens" | "discovery",
    at?: OAuthIssuer,
  ): void | Promise<void>;
  /** Sends the person to an address. */
  redirectToAuthorization(url: URL): void | Promise<void>;
  /** The grant of the last `redirectToAuthorization`, once. */
  takeGrant?(): OAuthGrant | undefined;
  /** The grant of a client that stands for itself, or for whom it has an assertion, at an authorization server. */
  prepareTokenRequest?(
    scope?: string,
    at?: GrantPlace,
  ): URLSearchParams | undefined | Promise<URLSearchParams | undefined>;
  /** The key that tokens are bound to. @default they are not */
  dpopKey?(): Promise<DpopKey>;
  /** This scope is asked for from now on, or at the next login: less was not enough. */
  widenScope?(scope: string): void | Promise<void>;
  /** Proves who the client is, in place of its secret. */
  addClientAuthentication?(
    headers: Headers,
    params: URLSearchParams,
    url: string | URL,
    server?: OAuthIssuer,
  ): void | Promise<void>;
}

/** A store of a person who logs in elsewhere: tokens are renewed where they were given, and nobody is asked. */
export interface LoginStore extends OAuthStore {
  readonly login: OAuthLogin;
}

/** What is known of the login of a store, where it is made elsewhere. */
export function loginIn(store: OAuthStore): OAuthLogin | undefined {
  return (store as Partial<LoginStore>).login;
}

/** What is known of a login that was made elsewhere, such as by `waybill login`. */
export interface OAuthLogin {
  /** What was found at the login. */
  found(): Promise<DiscoveredServer | undefined>;
  /** Runs a renewal while no other process renews the same tokens. */
  exclusive<T>(run: () => Promise<T>): Promise<T>;
}

/** Where a server's tokens were had. */
export interface OAuthDiscovery {
  readonly authorizationServerUrl: string;
  readonly resourceMetadataUrl?: string | undefined;
}

/** Settings of `createOAuthStore`: a person who consents, a client that stands for itself, or one that shows an assertion. */
export interface OAuthStoreOptions {
  /** @default in memory */
  readonly tokens?: TokenStore | undefined;
  /** @default registered with the authorization server */
  readonly clientId?: string | undefined;
  /** Goes with the `issuer` that gave it. @default none */
  readonly clientSecret?: string | undefined;
  /** A private key (PKCS #8, PEM) that the client proves itself with instead of a secret. @default none */
  readonly privateKey?: string | undefined;
  /** What `privateKey` signs with. @default "ES256" */
  readonly signingAlgorithm?: string | undefined;
  /** The authorization server that gave `clientId`; no other is shown it. @default the first that is met */
  readonly issuer?: string | undefined;
  /** An https address that describes this client: its id where the authorization server reads such. @default none */
  readonly clientMetadataUrl?: string | undefined;
  /**
   * An assertion that somebody else signed, such as a workload's identity, which tokens are had for (RFC 7523): text, or what gives it
   * whenever tokens are needed. Needs the `issuer`. @default none
   */
  readonly assertion?: string | ((at: OAuthIssuer) => string | Promise<string>) | undefined;
  /** Whose tokens are had by an assertion of their identity provider. Needs the `issuer`. @default none */
  readonly identity?: IdentityAssertion | undefined;
  /** Has tokens bound to a key that is kept beside them, and proves it with every request (DPoP). @default false */
  readonly dpop?: boolean | undefined;
  /** @default what the server asks for */
  readonly scope?: string | undefined;
  /** @default "Waybill" */
  readonly clientName?: string | undefined;
  /** Where the authorization server sends the person back to; without it the client stands for itself (client credentials). */
  readonly redirectUrl?: string | undefined;
  /**
   * Sends the person to the address. Resolves with the address they came back on, so that the connection goes on at once, or
   * with nothing: the connection then fails with `UNAUTHENTICATED`.
   */
  readonly onAuthorize?: ((url: URL) => Promise<string | URL | undefined>) | undefined;
}

/**
 * Creates the OAuth side of a connection, with tokens that outlive it where the store does. Clients and tokens are kept apart by
 * authorization server; a client of one's own belongs to one of them, and is shown to no other.
 */
export function createOAuthStore(options: OAuthStoreOptions): OAuthStore {
  checkOptions(options);
  const { redirectUrl, clientMetadataUrl, clientId, clientSecret, privateKey, identity } = options;
  const kept = createKeptCredentials(options.tokens ?? createMemoryTokenStore());
  const consent = createConsent(options.onAuthorize);
  let own = options.scope;
  return {
    redirectUrl,
    clientMetadataUrl,
    issuer: options.issuer,
    ...(identity !== undefined && { identityProvider: identity.tokenUrl ?? identity.issuer }),
    ...(options.dpop === true && { dpopKey: keepKey(kept) }),
    clientMetadata: toClientMetadata(options),
    clientInformation: async (at) => {
      if (clientId !== undefined && (await isHome(options, kept, at))) {
        return {
          client_id: clientId,
          ...(clientSecret !== undefined && { client_secret: clientSecret }),
          ...at,
        };
      }
      // Nobody is there to consent to another client in its place.
      if (redirectUrl === undefined) throw notHome();
      return (await kept.of(at?.issuer))?.client as OAuthClientInformation | undefined;
    },
    saveClientInformation: (client, at) => kept.keep({ issuer: at?.issuer ?? "", client: { ...client } }),
    tokens: async (at) => (await kept.of(at?.issuer))?.tokens as OAuthTokens | undefined,
    saveTokens: (tokens, at) => kept.keep({ issuer: at?.issuer ?? "", tokens: { ...tokens } }),
    discoveryState: async () => (await kept.get("discovery")) as OAuthDiscovery | undefined,
    saveDiscoveryState: (discovery) => kept.set("discovery", discovery),
    invalidateCredentials: async (what, at) => {
      if (what === "client" || what === "tokens") return await kept.forget([what], at?.issuer);
      await kept.set("discovery", undefined);
      if (what === "discovery") return;
      await kept.forget(["client", "tokens"], undefined);
      await kept.set("home", undefined);
    },
    state: consent.state,
    redirectToAuthorization: consent.ask,
    takeGrant: consent.take,
    ...(redirectUrl === undefined && {
      prepareTokenRequest: async (asked?: string, at?: GrantPlace) => {
        const scope = own ?? asked;
        // Nobody else is shown an assertion, whatever the server names.
        if (at !== undefined && !(await isHome(options, kept, at))) throw notHome();
        return new URLSearchParams({ ...(await grantOf(options, scope, at)), ...(scope && { scope }) });
      },
      widenScope: (scope: string) => {
        own = scope;
      },
    }),
    ...(privateKey !== undefined && {
      addClientAuthentication: async (
        headers: Headers,
        params: URLSearchParams,
        url: string | URL,
        at?: OAuthIssuer,
      ) => {
        if (!(await isHome(options, kept, at))) throw notHome();
        const { signingAlgorithm } = options;
        const proof = { clientId: clientId ?? "", privateKey, signingAlgorithm };
        await proveByKey(proof, { headers, params, issuer: at?.issuer ?? String(url) });
      },
    }),
  };
}

/** What a client that needs no consent asks with. */
async function grantOf(
  { assertion, identity }: OAuthStoreOptions,
  scope: string | undefined,
  at: GrantPlace | undefined,
): Promise<Record<string, string>> {
  if (at !== undefined && identity !== undefined) {
    const { token, kind = "id", ...client } = identity;
    const { issuer, resource, fetch } = at;
    const subject = typeof token === "function" ? await token() : token;
    const wanted = "identityAssertion";
    const exchange = { token: subject, kind, wanted, audience: issuer, resource, scope } as const;
    const given = await createGrantClient({ ...client, fetch }).exchange(exchange);
    return { grant_type: ASSERTION_GRANT, assertion: given.token };
  }
  if (at === undefined || assertion === undefined) return { grant_type: "client_credentials" };
  const given = typeof assertion === "function" ? await assertion({ issuer: at.issuer }) : assertion;
  return { grant_type: ASSERTION_GRANT, assertion: given };
}

/** A key outlives the process where the tokens do that are bound to it. */
function keepKey(kept: KeptCredentials): () => Promise<DpopKey> {
  let key: Promise<DpopKey> | undefined;
  const load = async (): Promise<DpopKey> => {
    const known = await kept.get("dpop");
    if (isPlainObject(known)) return await createDpopKey(known as JWK);
    const made = await createDpopKey();
    await kept.set("dpop", made.jwk);
    return made;
  };
  return () => {
    key ??= load().catch((thrown: unknown) => {
      key = undefined;
      throw thrown;
    });
    return key;
  };
}

function checkOptions(options: OAuthStoreOptions): void {
  const { redirectUrl, clientId, clientSecret, privateKey, clientMetadataUrl, assertion, identity } = options;
  const shown = assertion ?? identity;
  const proof = clientSecret ?? privateKey ?? shown;
  if (redirectUrl === undefined && (clientId === undefined || proof === undefined)) {
    throw new TypeError(
      "Without a redirectUrl, OAuth needs a clientId, and a clientSecret, privateKey, assertion or identity.",
    );
  }
  if (
    shown !== undefined &&
    (redirectUrl !== undefined || (assertion !== undefined && identity !== undefined))
  ) {
    throw new TypeError("OAuth takes one of redirectUrl, assertion and identity.");
  }
  if (shown !== undefined && options.issuer === undefined) {
    throw new TypeError(
      "An assertion needs the issuer it is for, so that no server can have it sent elsewhere.",
    );
  }
  if (clientSecret !== undefined && options.issuer === undefined) {
    throw new TypeError(
      "A clientSecret needs the issuer it belongs to, so that no server can have it sent elsewhere.",
    );
  }
  if (privateKey !== undefined && (clientId === undefined || clientSecret !== undefined)) {
    throw new TypeError("A privateKey goes with a clientId, and takes the place of a clientSecret.");
  }
  if (clientMetadataUrl === undefined) return;
  const url = parseUrl(clientMetadataUrl);
  if (url?.protocol !== "https:" || url.pathname === "/") {
    throw new TypeError("The clientMetadataUrl must be an https URL with a path.");
  }
}

/** Sends a person to the authorization server, and holds what they came back with until it is taken. */
function createConsent(onAuthorize: OAuthStoreOptions["onAuthorize"]) {
  let state: string | undefined;
  let grant: OAuthGrant | undefined;
  return {
    state: () => {
      state = randomBytes(24).toString("base64url");
      return state;
    },
    ask: async (url: URL): Promise<void> => {
      grant = undefined;
      if (!isWebAddress(url)) {
        throw new SignInError(
          "unsafe",
          "The authorization server names an address that is neither https nor on this machine.",
        );
      }
      const back = await onAuthorize?.(url);
      grant = back === undefined ? undefined : readGrant(String(back), state);
    },
    take: (): OAuthGrant | undefined => {
      const taken = grant;
      grant = undefined;
      return taken;
    },
  };
}

/** What a browser may be sent to: anything else could start a program or read a file. */
function isWebAddress({ protocol, hostname, username }: URL): boolean {
  return username === "" && (protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname)));
}

function toClientMetadata(options: OAuthStoreOptions): OAuthClientMetadata {
  const { redirectUrl, clientName, scope } = options;
  return {
    client_name: clientName ?? "Waybill",
    redirect_uris: redirectUrl === undefined ? [] : [redirectUrl],
    grant_types: redirectUrl === undefined ? [ownGrant(options)] : ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: toAuthMethod(options),
    application_type: isNative(redirectUrl) ? "native" : "web",
    ...(scope === undefined ? {} : { scope }),
  };
}

function ownGrant({ assertion, identity }: OAuthStoreOptions): string {
  return assertion === undefined && identity === undefined ? "client_credentials" : ASSERTION_GRANT;
}

function toAuthMethod({ clientSecret, privateKey }: OAuthStoreOptions): string {
  if (privateKey !== undefined) return "private_key_jwt";
  return clientSecret === undefined ? "none" : "client_secret_basic";
}

/** A program on the person's own machine is sent back to by a loopback address or a scheme of its own (RFC 8252). */
function isNative(redirectUrl: string | undefined): boolean {
  const url = redirectUrl === undefined ? undefined : parseUrl(redirectUrl);
  if (url === undefined) return false;
  return !/^https?:$/.test(url.protocol) || LOOPBACK.test(url.hostname);
}

function notHome(): SignInError {
  return new SignInError("wrong_issuer", "The clientId belongs to another authorization server.");
}

/** The first that a client is shown to is its own, where nobody says which. */
async function isHome(
  { issuer, clientId }: OAuthStoreOptions,
  kept: KeptCredentials,
  at: OAuthIssuer | undefined,
): Promise<boolean> {
  const known = await kept.get("home");
  const met = isPlainObject(known) && known["clientId"] === clientId ? known["issuer"] : undefined;
  const home = issuer ?? met;
  if (home !== undefined) return withoutSlash(home) === withoutSlash(at?.issuer);
  if (at !== undefined) await kept.set("home", { clientId, issuer: at.issuer });
  return true;
}

function withoutSlash(issuer: unknown): string {
  return String(issuer).replace(/\/$/, "");
}

/** Reads the address a person came back on; one with another state was not asked for by this client. */
function readGrant(back: string, state: string | undefined): OAuthGrant {
  const params = new URL(back, "http://localhost").searchParams;
  const code = params.get("code");
  if (!isSameSecret(params.get("state") ?? "", state ?? "")) {
    throw new SignInError(
      "consent_needed",
      "The authorization came back with another state than it was asked with.",
    );
  }
  const error = params.get("error") ?? "";
  if (/^[a-z_]{1,40}$/.test(error))
    throw new SignInError("refused", `The authorization server refused with ${error}.`, error);
  if (code === null) throw new SignInError("consent_needed", "The authorization came back without a code.");
  return { code, iss: params.get("iss") ?? undefined };
}

/** Compares two secrets in a time that says nothing about where they differ; an empty one is the same as none. */
export function isSameSecret(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && left.length > 0 && timingSafeEqual(left, right);
}

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

/** A field that belongs to no authorization server: what was discovered, where a client of one's own belongs, or the key of proofs. */
type KeptField = "discovery" | "home" | "dpop";

/** One record in a store, changed field by field and in order. */
interface KeptCredentials {
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
