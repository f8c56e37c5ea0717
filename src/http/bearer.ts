import { decodeJwt, type JWTPayload, type JWTVerifyOptions } from "jose";
import { HeldIdentity, type Identity } from "../core/access/identity.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import {
  type BearerKeyRing,
  type BearerKeys,
  discoverKeys,
  KeysUnavailableError,
  readBearerKeys,
  verifyWithAny,
} from "./bearer-keys.ts";
import { createProofCheck, type DpopAuth, type ProofCheck, type ProofFault } from "./dpop-proof.ts";
import type { HttpAnswer, Refusal, RequestHead } from "./exchange.ts";
import {
  createIntrospection,
  issuerFetch,
  type TokenFacts,
  type TokenIntrospection,
} from "./introspection.ts";

/** Tells clients where to get a token (RFC 9728); served under `/.well-known/oauth-protected-resource`. */
export interface ResourceMetadata {
  /** The URL of the endpoint. @default every audience that is a URL, each at a place of its own */
  readonly resource?: string | undefined;
  readonly authorizationServers: readonly string[];
  /** @default nothing is said about it */
  readonly scopesSupported?: readonly string[] | undefined;
}

/** Which bearer tokens are believed: signed JSON Web Tokens that have not expired, and those that their issuer says are valid. */
export interface BearerAuth {
  /** Whom tokens must be made for: this endpoint. */
  readonly audience: string | readonly string[];
  /**
   * Where keys are published, a set of keys, or one key; 16 keys of a set are tried on a token that names none.
   * @default where the metadata of the `issuer` says
   */
  readonly keys?: BearerKeys | undefined;
  /** Whose tokens they must be. @default anybody's who has the key */
  readonly issuer?: string | readonly string[] | undefined;
  /** Several authorization servers, each with keys of its own, in place of `issuer` and `keys`. @default one */
  readonly issuers?: readonly BearerIssuer[] | undefined;
  /** @default every asymmetric algorithm; HS256, HS384 and HS512 for a symmetric key, and only then */
  readonly algorithms?: readonly string[] | undefined;
  /** How the `issuer` is asked about tokens that are not signed, and without `keys` about all of them. @default such tokens are refused */
  readonly introspection?: TokenIntrospection | undefined;
  /** How tokens that are bound to a key are checked. @default the defaults of `DpopAuth` */
  readonly dpop?: DpopAuth | undefined;
  /** The address that clients know this server by, which proofs are made for. @default the host that a request names */
  readonly publicUrl?: string | undefined;
  /** Scopes a token must have for anything at all. @default none */
  readonly requiredScopes?: readonly string[] | undefined;
  /** Where clients get a token. @default nothing is said about it */
  readonly resourceMetadata?: ResourceMetadata | undefined;
  /** How far clocks may differ. @default 5_000 */
  readonly clockToleranceMs?: number | undefined;
  /** Reads an identity from what a valid token says. @default subject and scopes, and the rest as claims */
  readonly toIdentity?: ((payload: Readonly<Record<string, unknown>>) => Identity) | undefined;
}

/** One of several authorization servers whose tokens are believed. */
export interface BearerIssuer extends Pick<BearerAuth, "keys" | "algorithms" | "introspection"> {
  readonly issuer: string;
}

/** What is said to a client that asks where to get a token. */
export type Described = { readonly answer: HttpAnswer } | { readonly refusal: Refusal };

/** Checks the tokens of requests. */
export interface BearerCheck {
  check(request: RequestHead): Promise<{ readonly identity: Identity } | { readonly refusal: Refusal }>;
  /** Answers a request for the metadata; nothing where it is for something else. */
  describe(request: RequestHead): Described | undefined;
  /**
   * Writes the `WWW-Authenticate` of a 403: which scopes a token needs beside those that the caller has. Nothing where clients are not told
   * where to get a token: they could do nothing with it.
   */
  stepUp(request: RequestHead, identity: Identity, scopes: readonly string[]): string | undefined;
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const CREDENTIALS = /^(Bearer|DPoP) +([\w.~+/-]+=*)$/i;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const TOKEN_CHARACTERS = 16_384;

/** What a refusal says beside its status. */
interface Challenge {
  readonly status: 401 | 403;
  readonly message: string;
  readonly error?: string;
  readonly scope?: readonly string[];
  /** The nonce that proofs need. */
  readonly nonce?: string | undefined;
  /** Whether the client tried a token that is bound to a key. */
  readonly isDpop?: boolean;
}

/**
 * Creates what checks tokens. Options that make no sense, or no difference between tokens, are a `TypeError`, which names them by the
 * `option` they are given in.
 */
export function createBearerCheck(auth: BearerAuth, option = "auth"): BearerCheck {
  const verify = named(option, () => createVerification(auth));
  const toIdentity = auth.toIdentity ?? readIdentity;
  const { requiredScopes: required = [], clockToleranceMs = 5_000, dpop = {}, publicUrl } = auth;
  const proofs = named(option, () => createProofCheck(dpop, { clockToleranceMs, publicUrl }));
  const metadata = named(option, () => auth.resourceMetadata && readMetadata(auth, proofs));
  const challengeOf = (
    path: string,
    { error, scope = [], isDpop = false }: Omit<Challenge, "status" | "message">,
  ): string => {
    const fields = {
      ...(error !== undefined && { error }),
      ...(scope.length > 0 && { scope: scope.join(" ") }),
      ...(metadata !== undefined && { resource_metadata: metadata.urlOf(path) }),
    };
    const algs = { algs: proofs.algorithms.join(" ") };
    if (isDpop || dpop.required === true) return toChallenge("DPoP", { ...fields, ...algs });
    const bearer = toChallenge("Bearer", fields);
    return auth.dpop === undefined || error !== undefined
      ? bearer
      : `${bearer}, ${toChallenge("DPoP", algs)}`;
  };
  const refuse = ({ path }: RequestHead, { status, message, nonce, ...said }: Challenge) => {
    const headers = {
      "www-authenticate": challengeOf(path, said),
      ...(nonce !== undefined && { "dpop-nonce": nonce }),
    };
    return { refusal: { status, message, headers } };
  };
  return {
    async check(request) {
      const header = request.header("authorization");
      if (header === undefined)
        return refuse(request, { status: 401, message: "A bearer token is needed.", scope: required });
      const [, scheme = "", token] = (header.length <= TOKEN_CHARACTERS && CREDENTIALS.exec(header)) || [];
      const isDpop = scheme.toLowerCase() === "dpop";
      const payload = token === undefined ? "invalid" : await verify(token);
      if (payload === "unavailable")
        return busy("The authorization server that knows the token cannot be asked; try again later.");
      const message = "The bearer token is not valid.";
      const invalid = { status: 401, message, error: "invalid_token", scope: required, isDpop } as const;
      if (payload === "invalid" || token === undefined) return refuse(request, invalid);
      const bound = keyOf(payload);
      if (isDpop || bound !== undefined || dpop.required === true) {
        // A token that is bound to something else than a key proves nothing here, and is no plain one either.
        if (!isDpop || typeof bound !== "string") return refuse(request, invalid);
        const fault = await proofs.check(request, token, bound);
        if (fault === "full") return busy("Too many proofs came in lately; try again later.");
        if (fault !== undefined) return refuse(request, proofRefusal(fault, proofs.nonce()));
      }
      const identity = HeldIdentity.of(withExpiry(toIdentity(payload), payload, clockToleranceMs));
      if (required.every((scope) => identity.scopes.includes(scope))) return { identity };
      return refuse(request, {
        status: 403,
        message: `The token lacks a scope of: ${required.join(" ")}.`,
        error: "insufficient_scope",
        scope: required,
        isDpop,
      });
    },
    describe({ path, method }) {
      if (!isMetadataPath(path)) return undefined;
      const document = metadata?.documents.get(path);
      if (document === undefined) {
        return { refusal: { status: 404, message: "There is no such metadata.", headers: {} } };
      }
      const headers = { "content-type": "application/json" };
      if (method === "GET") return { answer: { status: 200, headers, body: document } };
      const message = "The metadata can only be read.";
      return { refusal: { status: 405, message, headers: { allow: "GET" } } };
    },
    stepUp(request, { scopes: held = [] }, scopes) {
      if (metadata === undefined) return undefined;
      const { path } = request;
      const isDpop = /^dpop /i.test(request.header("authorization") ?? "");
      const scope = [...new Set([...required, ...held.filter(isScope), ...scopes.filter(isScope)])];
      return challengeOf(path, { error: "insufficient_scope", scope, isDpop });
    },
  };
}

function busy(message: string): { readonly refusal: Refusal } {
  return { refusal: { status: 503, message, headers: { "retry-after": "5" } } };
}

function proofRefusal(fault: Exclude<ProofFault, "full">, nonce: string | undefined): Challenge {
  const isNonce = fault === "nonce";
  return {
    status: 401,
    message: isNonce ? "The proof needs the nonce of this server." : "The proof of the key is not valid.",
    error: isNonce ? "use_dpop_nonce" : "invalid_dpop_proof",
    nonce,
    isDpop: true,
  };
}

/** What can stand in a list of scopes (RFC 6749, 3.3). */
function isScope(scope: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope);
}

/** The key a token is bound to, by its thumbprint; null where it is bound to something else. */
function keyOf({ cnf }: Readonly<Record<string, unknown>>): string | null | undefined {
  if (cnf === undefined) return undefined;
  const key = isPlainObject(cnf) && Object.keys(cnf).length === 1 ? cnf["jkt"] : undefined;
  return typeof key === "string" && key !== "" ? key : null;
}

/** Nobody is known for longer than their token says. */
function withExpiry(identity: Identity, { exp = 0 }: JWTPayload, toleranceMs: number): Identity {
  const { expiresAt = Number.POSITIVE_INFINITY } = identity;
  return { ...identity, expiresAt: Math.min(expiresAt, exp * 1_000 + toleranceMs) };
}

/** What is wrong with an option is said of it by its whole name. */
function named<T>(option: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new TypeError(`${option}.${thrown.message}`, { cause: thrown });
  }
}

/** Tells whether a path is one under which metadata of a protected resource is looked for. */
function isMetadataPath(pathname: string): boolean {
  return pathname === WELL_KNOWN || pathname.startsWith(`${WELL_KNOWN}/`);
}

type Verification = (token: string) => Promise<TokenFacts>;

/** One answer for every fault of a token: an attacker who tries tokens learns nothing from it. */
function createVerification(auth: BearerAuth): Verification {
  const { audience, clockToleranceMs = 5_000 } = auth;
  if (audience === undefined || audience === "" || audience.length === 0) {
    throw new TypeError("audience must name this endpoint: without it, tokens for others would be taken.");
  }
  if (!Number.isFinite(clockToleranceMs) || clockToleranceMs < 0) {
    throw new TypeError("clockToleranceMs must be a number of milliseconds, 0 or more.");
  }
  const { issuers } = auth;
  if (issuers === undefined) return verifyAt(auth, auth.issuer);
  checkIssuers(auth, issuers);
  const known = new Map(
    issuers.map((each) => [each.issuer, verifyAt({ audience, clockToleranceMs, ...each }, each.issuer)]),
  );
  // A token that says nothing is shown to one of them alone.
  const opaque = issuers.find(({ introspection }) => introspection !== undefined)?.issuer;
  return async (token) => {
    const issuer = JWT.test(token) ? issuerOf(token) : opaque;
    return (await known.get(issuer ?? "")?.(token)) ?? "invalid";
  };
}

function checkIssuers(auth: BearerAuth, issuers: readonly BearerIssuer[]): void {
  if (!Array.isArray(issuers) || issuers.length === 0)
    throw new TypeError("issuers must list at least one authorization server.");
  const twice = (["keys", "issuer", "algorithms", "introspection"] as const).find(
    (name) => auth[name] !== undefined,
  );
  if (twice !== undefined)
    throw new TypeError(`issuers stand in place of ${twice}; give it to each of them.`);
  const names = issuers.map(({ issuer }) => issuer);
  if (!names.every((name) => typeof name === "string" && name !== "") || new Set(names).size < names.length)
    throw new TypeError("issuers must have an issuer each, and no two the same one.");
  if (issuers.filter(({ introspection }) => introspection !== undefined).length > 1)
    throw new TypeError(
      "issuers may have introspection once: a token must be shown to its own issuer alone.",
    );
}

/** What an unchecked token says of its issuer, which finds the keys it is then checked with. */
function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}

/** Verifies tokens of one authorization server, or of any who have its keys. */
function verifyAt(
  { audience, keys, algorithms, introspection, clockToleranceMs = 5_000 }: BearerAuth,
  issuer: string | readonly string[] | undefined,
): Verification {
  const home = typeof issuer === "string" && parseUrl(issuer) !== undefined ? issuer : undefined;
  if (introspection !== undefined && home === undefined)
    throw new TypeError("introspection needs the issuer, as an address.");
  const ask = introspection && createIntrospection(home ?? "", introspection);
  const ring = ringOf({ keys, algorithms, home, isAsked: ask !== undefined });
  const rules = {
    audience: typeof audience === "string" ? audience : [...audience],
    ...(issuer !== undefined && { issuer: typeof issuer === "string" ? issuer : [...issuer] }),
    algorithms: [...(ring?.algorithms ?? [])],
    requiredClaims: ["exp", "sub"],
    clockTolerance: clockToleranceMs / 1_000,
  };
  return async (token) => {
    if (ring !== undefined && JWT.test(token)) return await verifySigned(token, ring, rules);
    const facts = ask === undefined ? "invalid" : await ask(token);
    if (typeof facts === "string") return facts;
    return isForHere(facts, { audience, issuer: home, clockToleranceMs }) ? facts : "invalid";
  };
}

/** The keys that are given, else those that the issuer publishes; none where it is asked about every token. */
function ringOf(of: {
  readonly keys: BearerKeys | undefined;
  readonly algorithms: readonly string[] | undefined;
  readonly home: string | undefined;
  readonly isAsked: boolean;
}): BearerKeyRing | undefined {
  const { keys, algorithms, home, isAsked } = of;
  if (keys !== undefined) return readBearerKeys(keys, algorithms);
  if (home === undefined) throw new TypeError("keys must be given where no single issuer has an address.");
  if (isAsked) return undefined;
  return discoverKeys(home, issuerFetch(home), algorithms);
}

async function verifySigned(
  token: string,
  { find }: BearerKeyRing,
  rules: JWTVerifyOptions,
): Promise<TokenFacts> {
  try {
    const payload = await verifyWithAny(token, find, rules);
    return typeof payload.sub === "string" && payload.sub !== "" ? { ...payload } : "invalid";
  } catch (thrown) {
    return thrown instanceof KeysUnavailableError ? "unavailable" : "invalid";
  }
}

/** What an issuer says of a token is checked as what a signed one says: an issuer has tokens for others as well. */
function isForHere(
  { iss, aud, sub, exp, nbf }: Readonly<Record<string, unknown>>,
  {
    audience,
    issuer,
    clockToleranceMs,
  }: {
    readonly audience: string | readonly string[];
    readonly issuer: string | undefined;
    readonly clockToleranceMs: number;
  },
): boolean {
  const wanted = [audience].flat();
  const now = Date.now();
  const isIn = (value: unknown): boolean => typeof value === "string" && wanted.includes(value);
  if (iss !== issuer || !(Array.isArray(aud) ? aud.some(isIn) : isIn(aud))) return false;
  if (typeof sub !== "string" || sub === "") return false;
  if (typeof exp !== "number" || exp * 1_000 + clockToleranceMs <= now) return false;
  return nbf === undefined || (typeof nbf === "number" && nbf * 1_000 - clockToleranceMs <= now);
}

/** Claims that say something about the token rather than the caller. */
const TOKEN_CLAIMS = new Set([
  ...["sub", "scope", "scp", "exp", "nbf", "iat", "__proto__"],
  ...["active", "token_type", "cnf"],
]);

/** Tier and resources are not taken from a token unless `toIdentity` does: they give rights, and nobody agreed on their names. */
function readIdentity(payload: Readonly<Record<string, unknown>>): Identity {
  const rest = Object.entries(payload).filter(([name]) => !TOKEN_CLAIMS.has(name));
  return {
    subject: payload["sub"] as string,
    scopes: readScopes(payload["scope"] ?? payload["scp"]),
    claims: Object.fromEntries(rest),
  };
}

function readScopes(scope: unknown): readonly string[] {
  const list: readonly unknown[] =
    typeof scope === "string" ? scope.split(" ") : Array.isArray(scope) ? scope : [];
  return list.filter((item) => typeof item === "string" && item !== "") as string[];
}

interface Metadata {
  /** As JSON, by the path each is looked for at. */
  readonly documents: ReadonlyMap<string, string>;
  /** Where the metadata is of what a path belongs to. */
  urlOf(path: string): string;
}

/** Every address that tokens are for has metadata at a place of its own; the first at the root as well. */
function readMetadata(
  { resourceMetadata, audience, dpop, publicUrl }: BearerAuth,
  { algorithms }: ProofCheck,
): Metadata {
  const { resource, authorizationServers = [], scopesSupported } = resourceMetadata ?? {};
  const resources = resource === undefined ? [audience].flat().filter(isWebUrl) : [resource];
  if (resources.length === 0 || !resources.every(isWebUrl)) {
    throw new TypeError(
      "resourceMetadata.resource must be the URL of the endpoint, where the audience is not.",
    );
  }
  const documents = new Map<string, string>();
  const places = resources.map((each) => {
    const { origin, pathname } = new URL(each);
    const path = pathname.replace(/\/$/, "");
    const document = {
      resource: each,
      authorization_servers: [...authorizationServers],
      ...(scopesSupported && { scopes_supported: [...scopesSupported] }),
      bearer_methods_supported: ["header"],
      ...(dpop && { dpop_signing_alg_values_supported: [...algorithms] }),
      ...(dpop?.required === true && { dpop_bound_access_tokens_required: true }),
    };
    const text = JSON.stringify(document);
    for (const place of documents.size === 0 ? [WELL_KNOWN + path, WELL_KNOWN] : [WELL_KNOWN + path]) {
      documents.set(place, text);
    }
    return { path, url: origin + WELL_KNOWN + path };
  });
  // A request below no resource is told of the first, which clients are sent to anyway.
  const sorted = [...places].sort((a, b) => b.path.length - a.path.length);
  const base = publicUrl === undefined ? "" : new URL(publicUrl).pathname.replace(/\/$/, "");
  return {
    documents,
    urlOf: (path) => {
      const whole = base + path;
      const at = sorted.find((place) => whole === place.path || whole.startsWith(`${place.path}/`));
      return (at ?? places[0])?.url ?? "";
    },
  };
}

/** Tells whether a text is an http or https address. */
export function isWebUrl(text: string): boolean {
  return parseUrl(text) !== undefined && /^https?:/.test(text);
}

function toChallenge(scheme: string, fields: Readonly<Record<string, string>>): string {
  const list = Object.entries(fields).map(([name, value]) => `${name}="${value.replace(/["\\]/g, "")}"`);
  return list.length === 0 ? scheme : `${scheme} ${list.join(", ")}`;
}
