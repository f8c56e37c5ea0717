import { createHash } from "node:crypto";
import { HeldIdentity, type Identity } from "../core/access/identity.ts";
import { type CallError, isCallError } from "../core/errors/errors.ts";
import { checkOption, checkOptionsObject } from "../core/options/check-options.ts";
import { type BearerAuth, createBearerCheck, type Described } from "./bearer.ts";
import type { HttpRequest, Refusal, RequestHead } from "./exchange.ts";

/** Which API keys are believed, and whose they are. */
export interface ApiKeyAuth {
  /** The header a key is sent in. @default "x-api-key" */
  readonly header?: string | undefined;
  /** Identities by key, or what finds one; nothing, or `null`, is a key nobody knows. */
  readonly keys:
    | Readonly<Record<string, Identity>>
    | ((key: string) => Identity | null | undefined | Promise<Identity | null | undefined>);
}

/** Whose requests are answered; with both members, a request needs one of the two. */
export interface HttpAuthOptions {
  /** Signed bearer tokens that are believed. @default none */
  readonly bearer?: BearerAuth | undefined;
  /** Keys that are believed. @default none */
  readonly apiKeys?: ApiKeyAuth | undefined;
}

/** How callers over HTTP are told from one another; with neither, all are anonymous. */
export interface HttpAuthenticationOptions {
  /** Which credentials are believed; every request needs one. @default all callers are anonymous */
  readonly auth?: HttpAuthOptions | undefined;
  /**
   * Says who makes a request, in place of `auth`; nothing, or `null`, is an anonymous caller, and a `CallError` it throws a refusal.
   * @default all callers are anonymous
   */
  readonly authenticate?:
    | ((request: Request) => Identity | null | undefined | Promise<Identity | null | undefined>)
    | undefined;
}

/** A request that is not heard, with the error where `authenticate` threw one. */
export type Unheard = { readonly refusal: Refusal; readonly error?: CallError | undefined };

/** Tells who is asking. */
export interface HttpAuthentication {
  /** Whether a caller without an identity is known to be nobody, rather than not known. */
  readonly decides: boolean;
  /** The header that API keys are sent in, in lower case; nothing where none are believed. */
  readonly keyHeader: string | undefined;
  identify(request: HttpRequest): Promise<{ readonly identity: Identity | undefined } | Unheard>;
  /** Answers a request for what clients need to know to get a token; nothing where it is for something else. */
  describe(request: HttpRequest): Described | undefined;
  /** Writes the `WWW-Authenticate` of a 403 for lack of scopes; nothing where the caller can have no others. */
  readonly stepUp: StepUp | undefined;
}

/** Writes the `WWW-Authenticate` of a 403 for lack of scopes; nothing where the caller can have no others. */
export type StepUp = (
  request: RequestHead,
  identity: Identity,
  scopes: readonly string[],
) => string | undefined;

/** Creates what authenticates requests; both ways at once, and `auth` that believes nobody, are a `TypeError`. */
export function createAuthentication({ auth, authenticate }: HttpAuthenticationOptions): HttpAuthentication {
  const { bearer, apiKeys } = auth ?? {};
  const isGiven = bearer !== undefined || apiKeys !== undefined;
  if (isGiven && authenticate !== undefined) {
    throw new TypeError("Give auth or authenticate, not both: it would not be clear which one decides.");
  }
  if (auth !== undefined && !isGiven) {
    throw new TypeError("auth must say which bearer tokens or apiKeys are believed.");
  }
  if (authenticate !== undefined) return askHost(authenticate);
  return isGiven ? askCredentials(auth) : ANYBODY;
}

/** Throws a `TypeError` where `auth` or `authenticate` cannot work. */
export function checkAuthentication({ auth, authenticate }: HttpAuthenticationOptions): void {
  if (auth !== undefined) checkOptionsObject(auth, ["bearer", "apiKeys"], "auth.");
  for (const name of ["bearer", "apiKeys"] as const) {
    const value = auth?.[name];
    checkOption(`auth.${name}`, value, "an object", typeof value === "object" && value !== null);
  }
  checkOption("authenticate", authenticate, "a function", typeof authenticate === "function");
}

const ANYBODY: HttpAuthentication = {
  decides: false,
  keyHeader: undefined,
  identify: async () => ({ identity: undefined }),
  describe: () => undefined,
  stepUp: undefined,
};

function askHost(authenticate: NonNullable<HttpAuthenticationOptions["authenticate"]>): HttpAuthentication {
  return {
    ...ANYBODY,
    decides: true,
    async identify(request) {
      try {
        const identity = await authenticate(request.toRequest());
        return {
          identity: identity === undefined || identity === null ? undefined : HeldIdentity.of(identity),
        };
      } catch (thrown) {
        if (!isCallError(thrown)) throw thrown;
        const { httpStatus: status } = thrown;
        const usual: Record<string, string> = status === 401 ? { "www-authenticate": "Bearer" } : {};
        const headers = refusedWith.get(thrown) ?? usual;
        return { refusal: { status, message: thrown.message, headers }, error: thrown };
      }
    },
  };
}

/** What refusals say in their headers, by the error that they were made to. */
const refusedWith = new WeakMap<CallError, Refusal["headers"]>();

/** Has an error that `authenticate` throws refuse with these headers. */
export function withRefusalHeaders(error: CallError, headers: Refusal["headers"]): CallError {
  refusedWith.set(error, headers);
  return error;
}

function askCredentials(auth: HttpAuthOptions | undefined): HttpAuthentication {
  const bearer = auth?.bearer && createBearerCheck(auth.bearer, "auth.bearer");
  const keys = auth?.apiKeys && createApiKeyCheck(auth.apiKeys);
  const headers = { "www-authenticate": bearer === undefined ? "ApiKey" : "Bearer" };
  const byKey = new WeakSet<Identity>();
  const refuse = (message: string): Unheard => ({ refusal: { status: 401, message, headers } });
  return {
    decides: true,
    keyHeader: keys?.header,
    describe: (request) => bearer?.describe(request),
    // The holder of a key gets no token with more scopes.
    stepUp:
      bearer &&
      ((request, identity, scopes) =>
        byKey.has(identity) ? undefined : bearer.stepUp(request, identity, scopes)),
    async identify(request) {
      const key = keys && request.header(keys.header);
      if (key !== undefined) {
        const identity = await keys?.find(key);
        if (identity === undefined) return refuse("The API key is not valid.");
        if (bearer !== undefined) byKey.add(identity);
        return { identity };
      }
      return (await bearer?.check(request)) ?? refuse(`An API key is needed, in the header ${keys?.header}.`);
    },
  };
}

/** Finds whose an API key is. */
interface ApiKeyCheck {
  /** In lower case. */
  readonly header: string;
  find(key: string): Promise<Identity | undefined>;
}

const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const KEY_CHARACTERS = 4_096;

/** Creates what finds identities by key; keys that cannot be sent, or are too easily guessed, are a `TypeError`. */
function createApiKeyCheck(auth: ApiKeyAuth): ApiKeyCheck {
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
