import { createHash, timingSafeEqual } from "node:crypto";
import { HeldIdentity, type Identity, ownerOf } from "../../core/access/identity.ts";
import type { FormatName } from "../../core/result/tool-result.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { StepUp } from "../../http/authentication.ts";
import { type BearerCheck, createBearerCheck, type Described, isWebUrl } from "../../http/bearer.ts";
import { callerDigest as digestOfCaller } from "../../http/caller.ts";
import type { Refusal, RequestHead } from "../../http/exchange.ts";
import { LEAST_TOKEN_CHARACTERS } from "../config/config-path.ts";
import type { ServeAuthConfig } from "../config/gateway-config.ts";

/** Who is asking, or why they are not heard. */
type AdmittedCaller = { readonly identity: Identity | undefined } | { readonly refusal: Refusal };

/** Holders of tokens by the names of those; what they may do is looked at for each request, and may change. */
export type TokenHolders = ReadonlyMap<string, Identity>;

interface KnownToken {
  readonly digest: Buffer;
  /** Stays the same for as long as the token and what it allows do. */
  readonly grant: Grant;
  readonly identity: Identity;
  readonly format: FormatName | undefined;
}

/** What callers are told from one another by besides the config of it. */
interface GatewayAuthOptions {
  /** @default none */
  readonly holders?: TokenHolders | undefined;
  /** The address that clients know the gateway by. @default the host that a request names */
  readonly publicUrl?: string | undefined;
}

/** What a caller was let in by. */
interface Grant {
  readonly rights: string;
}

/** What a holder may do is looked at for each request. */
const OF_HOLDER = "as its holder may";

/** No token is longer; what is, is not even looked at. */
const TOKEN_CHARACTERS = 16_384;
const BEARER = /^Bearer +(\S+)$/i;

/** Tells callers from one another as a config says, which may change at any time. */
export class GatewayAuth {
  #tokens: readonly KnownToken[] = [];
  #bearer: BearerCheck | undefined;
  #formats = new WeakMap<Identity, FormatName>();
  /** What those who were let in were let in by. */
  readonly #grants = new WeakMap<Identity, Grant | BearerCheck>();
  #written: string | undefined;
  /** Of all that says who is believed. */
  #digest: Buffer | undefined;
  readonly #holders: TokenHolders;
  /** Counts how often others are believed. */
  #revision = 0;

  constructor(
    auth: ServeAuthConfig | undefined,
    { holders = new Map(), publicUrl }: GatewayAuthOptions = {},
  ) {
    this.#holders = holders;
    this.set(auth, publicUrl);
  }

  /** Whether every caller is asked who they are. */
  get isOn(): boolean {
    return this.#tokens.length > 0 || this.#bearer !== undefined;
  }

  /** Gives what tells whether those believed now still are. */
  isUnchanged(): () => boolean {
    const revision = this.#revision;
    return () => revision === this.#revision;
  }

  /** Believes others from now on; throws a `TypeError`, and stays as it is, where that makes no sense. */
  set(auth: ServeAuthConfig | undefined, publicUrl?: string): void {
    const tokens = Object.entries(auth?.tokens ?? {}).map(([name, config]) => {
      const token = readToken(name, config);
      const holder = this.#holders.get(name);
      const identity = holder ?? token.identity;
      const rights = holder === undefined ? digestOfCaller(identity) : OF_HOLDER;
      const grant = this.#grantOf(token.digest, rights) ?? { rights };
      return { ...token, identity, grant };
    });
    for (const { identity, grant } of tokens) {
      markCaller(identity, "token");
      this.#grants.set(identity, grant);
    }
    const written = JSON.stringify([auth?.jwt, publicUrl]);
    // The keys that were had from elsewhere are kept where nothing has changed.
    if (written !== this.#written) this.#bearer = createJwtCheck(auth, publicUrl);
    this.#written = written;
    this.#tokens = tokens;
    const digest = digestOf(JSON.stringify(auth ?? null));
    // A config changes for many reasons, and most of them change nothing for callers.
    if (this.#digest?.equals(digest) !== true) this.#revision += 1;
    this.#digest = digest;
    this.#formats = new WeakMap(
      tokens.flatMap(({ identity, format }) => (format === undefined ? [] : [[identity, format] as const])),
    );
  }

  /** Tells whether a caller who was let in would still be, as the same and with the same rights. */
  isCurrent(identity: Identity | undefined): boolean {
    if (identity === undefined) return !this.isOn;
    const grant = this.#grants.get(identity);
    if (grant === undefined) return false;
    return grant === this.#bearer || this.#tokens.some((token) => token.grant === grant);
  }

  /** Remembers that a copy of an identity was let in by the same. */
  markCopy(copy: Identity, identity: Identity): void {
    const grant = this.#grants.get(identity);
    if (grant !== undefined) this.#grants.set(copy, grant);
  }

  /** The format that the holder of a token is given. */
  formatOf(identity: Identity | undefined): FormatName | undefined {
    return identity && this.#formats.get(identity);
  }

  /** Finds out who makes a request; where nobody is asked, everybody is anonymous. */
  async identify(request: RequestHead): Promise<AdmittedCaller> {
    if (!this.isOn) return { identity: undefined };
    const authorization = request.header("authorization");
    const apiKey = request.header("x-api-key");
    const given = authorization === undefined ? apiKey : BEARER.exec(authorization)?.[1];
    const known = given === undefined ? undefined : this.#find(given);
    if (known !== undefined) return { identity: known.identity };
    const isKeyAlone = authorization === undefined && apiKey !== undefined;
    if (this.#bearer !== undefined && !isKeyAlone) {
      const bearer = this.#bearer;
      const checked = await bearer.check(request);
      // Keys may take long to come, and others may be believed by then.
      if (bearer !== this.#bearer) return await this.identify(request);
      if (!("identity" in checked)) return checked;
      this.#grants.set(checked.identity, bearer);
      markCaller(checked.identity, `jwt:${issuerOf(checked.identity)}`);
      if (given !== undefined) shown.set(checked.identity, given);
      return checked;
    }
    const isMissing = authorization === undefined && apiKey === undefined;
    return {
      refusal: {
        status: 401,
        message: isMissing ? "A bearer token is needed." : "The token is not valid.",
        headers: { "www-authenticate": isMissing ? "Bearer" : 'Bearer error="invalid_token"' },
      },
    };
  }

  /** Writes the `WWW-Authenticate` of a 403 for lack of scopes; nothing for those who can get no other token. */
  readonly stepUp: StepUp = (request, identity, scopes) => {
    const bearer = this.#bearer;
    return bearer !== undefined && this.#grants.get(identity) === bearer
      ? bearer.stepUp(request, identity, scopes)
      : undefined;
  };

  /** Answers what clients ask to find out where to get a token; nothing where there is nothing to say. */
  describe(request: RequestHead): Described | undefined {
    return this.#bearer?.describe(request);
  }

  #grantOf(digest: Buffer, rights: string): Grant | undefined {
    return this.#tokens.find((known) => known.digest.equals(digest) && known.grant.rights === rights)?.grant;
  }

  /** Looks at every token, whichever it is: how long that takes tells nothing. */
  #find(given: string): KnownToken | undefined {
    if (given.length > TOKEN_CHARACTERS) return undefined;
    const digest = digestOf(given);
    let found: KnownToken | undefined;
    for (const token of this.#tokens) if (timingSafeEqual(token.digest, digest)) found = token;
    return found;
  }
}

function readToken(
  name: string,
  { token, scopes, tier, format }: NonNullable<ServeAuthConfig["tokens"]>[string],
): Omit<KnownToken, "grant"> {
  if (typeof token !== "string" || token.length < LEAST_TOKEN_CHARACTERS || /\s/.test(token)) {
    throw new TypeError(
      `serve.auth.tokens.${name}.token must have at least ${LEAST_TOKEN_CHARACTERS} characters, none of them a space.`,
    );
  }
  const identity = HeldIdentity.of({
    subject: name,
    ...(scopes !== undefined && { scopes }),
    ...(tier !== undefined && { tier }),
  });
  return { digest: digestOf(token), identity, format };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Always of the same length, and without what separates it from a subject. */
function issuerOf({ claims }: Identity): string {
  return issuerKey(claims?.["iss"] ?? null);
}

function issuerKey(issuer: unknown): string {
  return digestOf(JSON.stringify(issuer)).toString("base64url");
}

/** The keys that callers of one name may have by a config: as the holder of a token, and by each issuer that it names. */
export function ownerKeysOf(subject: string, auth: ServeAuthConfig | undefined): readonly string[] {
  const issuers = new Set<string | null>([null]);
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) walk(each);
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (name === "issuer")
        for (const each of [member].flat()) if (typeof each === "string") issuers.add(each);
      walk(member);
    }
  };
  walk({ ...auth, tokens: undefined });
  return [`token:${subject}`, ...Array.from(issuers, (issuer) => `jwt:${issuerKey(issuer)}:${subject}`)];
}

/** Clients are told where to get a token where both it and this gateway have an address. */
function createJwtCheck(
  auth: ServeAuthConfig | undefined,
  publicUrl: string | undefined,
): BearerCheck | undefined {
  if (auth?.jwt === undefined) return undefined;
  const { jwksUrl, scopes, issuers, ...given } = auth.jwt;
  const { audience, issuer, requiredScopes } = given;
  const named = issuers?.map((each) => each.issuer) ?? [issuer ?? []].flat();
  const authorizationServers = named.filter((one) => parseUrl(one) !== undefined);
  const isDescribed = authorizationServers.length > 0 && [audience].flat().some(isWebUrl);
  return createBearerCheck(
    {
      ...given,
      keys: jwksUrl,
      ...(issuers !== undefined && {
        issuers: issuers.map(({ jwksUrl: keys, ...each }) => ({ ...each, keys })),
      }),
      publicUrl,
      ...(isDescribed && {
        resourceMetadata: { authorizationServers, scopesSupported: scopes ?? requiredScopes },
      }),
    },
    "serve.auth.jwt",
  );
}

const keys = new WeakMap<Identity, string>();
/** Signed tokens by who showed them. */
const shown = new WeakMap<Identity, string>();

/** The signed token that a caller showed the gateway, for what is asked for in their name; nothing for holders of a token of the config. */
export function bearerOf(identity: Identity | undefined): string | undefined {
  return identity && shown.get(identity);
}

/** Remembers how a caller was recognised: two of one name need not be the same. */
function markCaller(identity: Identity, by: string): void {
  keys.set(identity, `${by}:${identity.subject}`);
}

/** How a caller was recognised: by a token of the config, or by one that an authorization server signed; nothing for others. */
export function recognisedBy(identity: Identity): "token" | "jwt" | undefined {
  const key = keys.get(identity);
  if (key === undefined) return undefined;
  return key.startsWith("token:") ? "token" : "jwt";
}

/** Tells a caller from all others, by who vouches for them where no server of the gateway knows them; nothing for one who is anonymous. */
export function callerKey(identity: Identity | undefined): string | undefined {
  return identity && (keys.get(identity) ?? `other:${ownerOf(identity)}`);
}
