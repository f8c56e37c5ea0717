import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import { HeldIdentity, type Identity } from "../core/access/identity.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import { type BearerKeys, KeysUnavailableError, readBearerKeys } from "./bearer-keys.ts";
import type { HttpAnswer } from "./exchange.ts";
import type { Refusal, RequestHead } from "./refusal.ts";

/** Tells clients where to get a token (RFC 9728); served under `/.well-known/oauth-protected-resource`. */
export interface ResourceMetadata {
  /** The URL of the endpoint. @default the audience, where that is a URL */
  readonly resource?: string | undefined;
  readonly authorizationServers: readonly string[];
  /** @default nothing is said about it */
  readonly scopesSupported?: readonly string[] | undefined;
}

/** Which bearer tokens are believed: signed JSON Web Tokens that have not expired. */
export interface BearerAuth {
  /** Whom tokens must be made for: this endpoint. */
  readonly audience: string | readonly string[];
  /** Where keys are published, a set of keys, or one key; 16 keys of a set are tried on a token that names none. */
  readonly keys: BearerKeys;
  /** Whose tokens they must be. @default anybody's who has the key */
  readonly issuer?: string | readonly string[] | undefined;
  /** @default every asymmetric algorithm; HS256, HS384 and HS512 for a symmetric key, and only then */
  readonly algorithms?: readonly string[] | undefined;
  /** Scopes a token must have for anything at all. @default none */
  readonly requiredScopes?: readonly string[] | undefined;
  /** Where clients get a token. @default nothing is said about it */
  readonly resourceMetadata?: ResourceMetadata | undefined;
  /** How far clocks may differ. @default 5_000 */
  readonly clockToleranceMs?: number | undefined;
  /** Reads an identity from what a valid token says. @default subject and scopes, and the rest as claims */
  readonly toIdentity?: ((payload: Readonly<Record<string, unknown>>) => Identity) | undefined;
}

/** What is said to a client that asks where to get a token. */
export type Described = { readonly answer: HttpAnswer } | { readonly refusal: Refusal };

/** Checks the tokens of requests. */
export interface BearerCheck {
  check(request: RequestHead): Promise<{ readonly identity: Identity } | { readonly refusal: Refusal }>;
  /** Answers a request for the metadata; nothing where it is for something else. */
  describe(request: RequestHead): Described | undefined;
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const TOKEN = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;
const TOKEN_CHARACTERS = 16_384;
/** Keys of a set that are tried on a token that names none. */
const KEYS_TRIED = 16;

/**
 * Creates what checks tokens. Options that make no sense, or no difference between tokens, are a `TypeError`, which names them by the
 * `option` they are given in.
 */
export function createBearerCheck(auth: BearerAuth, option = "auth"): BearerCheck {
  const verify = named(option, () => createVerification(auth));
  const toIdentity = auth.toIdentity ?? readIdentity;
  const { requiredScopes: required = [], clockToleranceMs = 5_000 } = auth;
  const metadata = named(
    option,
    () => auth.resourceMetadata && readMetadata(auth.resourceMetadata, auth.audience),
  );
  const challenge = (status: number, message: string, fields: Readonly<Record<string, string>>) => {
    const all = metadata === undefined ? fields : { ...fields, resource_metadata: metadata.url };
    return { refusal: { status, message, headers: { "www-authenticate": toChallenge(all) } } };
  };
  return {
    async check(request) {
      const header = request.header("authorization");
      if (header === undefined) return challenge(401, "A bearer token is needed.", {});
      const payload = await verify(header);
      if (payload === "unavailable") {
        const message = "The keys to check tokens with cannot be had; try again later.";
        return { refusal: { status: 503, message, headers: { "retry-after": "5" } } };
      }
      if (payload === "invalid") {
        return challenge(401, "The bearer token is not valid.", { error: "invalid_token" });
      }
      const identity = HeldIdentity.of(withExpiry(toIdentity(payload), payload, clockToleranceMs));
      if (required.every((scope) => identity.scopes.includes(scope))) return { identity };
      const scope = required.join(" ");
      return challenge(403, `The token lacks a scope of: ${scope}.`, { error: "insufficient_scope", scope });
    },
    describe({ path, method }) {
      if (!isMetadataPath(path)) return undefined;
      if (!metadata?.paths.has(path)) {
        return { refusal: { status: 404, message: "There is no such metadata.", headers: {} } };
      }
      const headers = { "content-type": "application/json" };
      if (method === "GET") return { answer: { status: 200, headers, body: metadata.document } };
      const message = "The metadata can only be read.";
      return { refusal: { status: 405, message, headers: { allow: "GET" } } };
    },
  };
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

type Verification = (header: string) => Promise<JWTPayload | "invalid" | "unavailable">;

/** One answer for every fault of a token: whoever tries tokens out learns nothing from it. */
function createVerification(auth: BearerAuth): Verification {
  const { audience, issuer, clockToleranceMs = 5_000 } = auth;
  if (audience === undefined || audience === "" || audience.length === 0) {
    throw new TypeError("audience must name this endpoint: without it, tokens for others would be taken.");
  }
  if (!Number.isFinite(clockToleranceMs) || clockToleranceMs < 0) {
    throw new TypeError("clockToleranceMs must be a number of milliseconds, 0 or more.");
  }
  const { find, algorithms } = readBearerKeys(auth.keys, auth.algorithms);
  const rules = {
    audience: typeof audience === "string" ? audience : [...audience],
    ...(issuer !== undefined && { issuer: typeof issuer === "string" ? issuer : [...issuer] }),
    algorithms: [...algorithms],
    requiredClaims: ["exp", "sub"],
    clockTolerance: clockToleranceMs / 1_000,
  };
  return async (header) => {
    const token = header.length <= TOKEN_CHARACTERS ? TOKEN.exec(header)?.[1] : undefined;
    if (token === undefined) return "invalid";
    try {
      const payload = await verifyWithAny(token, find, rules);
      return typeof payload.sub === "string" && payload.sub !== "" ? payload : "invalid";
    } catch (thrown) {
      return thrown instanceof KeysUnavailableError ? "unavailable" : "invalid";
    }
  };
}

/** Verifies a token; where it does not say which key of a set it was signed with, with each that may be the one. */
async function verifyWithAny(
  token: string,
  find: JWTVerifyGetKey,
  rules: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, find, rules)).payload;
  } catch (thrown) {
    if (!(thrown instanceof errors.JWKSMultipleMatchingKeys)) throw thrown;
    let tried = 0;
    for await (const key of thrown) {
      tried += 1;
      if (tried > KEYS_TRIED) break;
      try {
        return (await jwtVerify(token, key, rules)).payload;
      } catch (wrong) {
        if (!(wrong instanceof errors.JWSSignatureVerificationFailed)) throw wrong;
      }
    }
    throw thrown;
  }
}

/** Claims that say something about the token rather than the caller. */
const TOKEN_CLAIMS = new Set(["sub", "scope", "scp", "exp", "nbf", "iat", "__proto__"]);

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
  readonly url: string;
  readonly paths: ReadonlySet<string>;
  /** As JSON. */
  readonly document: string;
}

function readMetadata(metadata: ResourceMetadata, audience: BearerAuth["audience"]): Metadata {
  const resource = metadata.resource ?? (typeof audience === "string" ? audience : (audience[0] ?? ""));
  if (parseUrl(resource) === undefined || !/^https?:/.test(resource)) {
    throw new TypeError(
      "resourceMetadata.resource must be the URL of the endpoint, where the audience is not.",
    );
  }
  const { origin, pathname } = new URL(resource);
  const path = `${WELL_KNOWN}${pathname === "/" ? "" : pathname}`;
  const document = {
    resource,
    authorization_servers: [...metadata.authorizationServers],
    ...(metadata.scopesSupported && { scopes_supported: [...metadata.scopesSupported] }),
    bearer_methods_supported: ["header"],
  };
  return { url: origin + path, paths: new Set([WELL_KNOWN, path]), document: JSON.stringify(document) };
}

function toChallenge(fields: Readonly<Record<string, string>>): string {
  const list = Object.entries(fields).map(([name, value]) => `${name}="${value.replace(/["\\]/g, "")}"`);
  return list.length === 0 ? "Bearer" : `Bearer ${list.join(", ")}`;
}
