import { CallError } from "../../../core/errors/errors.ts";
import type { OperationContext } from "../../../core/operation/operation-context.ts";
import type { SourceSecrets } from "../../../core/secrets/secret-mask.ts";
import { percentDecoded } from "../../../core/text/parse-url.ts";
import type { RequestDraft } from "../http-message.ts";
import type { OperationPlan, SecuritySchemePlan } from "../plan.ts";
import {
  type Addition,
  addBasic,
  addBearer,
  addKey,
  addTo,
  canHoldKey,
  clash,
  keyMisfit,
} from "./addition.ts";
import {
  type AuthOptions,
  basicMisfit,
  type Credential,
  type CredentialValue,
  functionFailure,
  isBasicForm,
  isOAuthForm,
  type OAuthCredential,
  oauthMisfit,
  showNames,
  showScheme,
  tokenMisfit,
  unauthenticated,
} from "./credentials.ts";
import { findTokenAddress } from "./token-address.ts";
import { type TokenSources, waitFor } from "./token-source.ts";

/** What an authorizer knows of a document. */
interface AuthorizedApi {
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
  /** Where the document was read from; relative addresses are relative to it. */
  readonly location?: URL | undefined;
}

/** What an authorizer works with. */
interface AuthorizerOptions {
  /** Without it, requests go without credentials, whatever the document says. */
  readonly auth: AuthOptions;
  /** Whether credentials may go to an origin. */
  readonly origins: (origin: string) => boolean;
  /** Where tokens are kept, which outlive a document that is read again. */
  readonly tokens: TokenSources;
  /** Gets to know the credentials that are had at run time. */
  readonly secrets: SourceSecrets;
  readonly warn: (message: string, cause?: unknown) => void;
}

/** Adds to requests what shows who is calling. */
export interface Authorizer {
  /** Adds what the first alternative says that can be satisfied; at once where nothing has to be waited for. */
  authorize(
    plan: OperationPlan,
    draft: RequestDraft,
    request: Omit<AuthorizeRequest, "origin">,
  ): void | Promise<void>;
  /** Tells whether a 401 is worth one more try, with `refused`. */
  mayRetry(plan: OperationPlan): boolean;
}

/** Makes what adds credentials to the requests of a document; throws a `TypeError` for credentials that cannot be used. */
export function createAuthorizer(api: AuthorizedApi, options: AuthorizerOptions): Authorizer {
  const { auth, origins, tokens, secrets, warn } = options;
  const settings = { sources: tokens, base: api.location };
  const credentials = new SchemeCredentials(auth, api.schemes, settings);
  for (const key of credentials.unused()) warn(`auth.${key} serves none of the document's security schemes.`);
  const known = new WeakMap<OperationPlan, SecurityRules>();
  const rulesOf = (plan: OperationPlan): SecurityRules => {
    let rules = known.get(plan);
    if (rules === undefined) {
      rules = readSecurityRules(plan, credentials);
      known.set(plan, rules);
    }
    return rules;
  };
  return {
    authorize: (plan, draft, given) => {
      const request = { ...given, origin: draft.origin };
      const rules = rulesOf(plan);
      if (!origins(draft.origin))
        return goWithout(
          rules,
          "credentials go to the API's own origin and to those named in authOrigins alone",
        );
      if (rules.fixed !== undefined) return addTo(draft, rules.fixed);
      const found = choose(rules.alternatives, request, 0);
      const finishWith = (additions: Found): void => {
        for (const addition of additions ?? []) noteCredential(secrets, addition);
        finish(rules, draft, additions);
      };
      return found instanceof Promise ? found.then(finishWith) : finishWith(found);
    },
    mayRetry: (plan) => rulesOf(plan).renewable,
  };
}

/** The value of a header comes with a word before it, those of queries and cookies are escaped. */
function noteCredential(secrets: SourceSecrets, { place, name, value }: Addition): void {
  if (place !== "header") secrets.obtained(percentDecoded(value));
  else if (name === "authorization") secrets.obtainedHeader(name, value);
  else secrets.obtained(value);
}

type Found = readonly Addition[] | undefined;

const NO_CREDENTIAL = "the option auth has nothing for it";

function finish(rules: SecurityRules, draft: RequestDraft, found: Found): void {
  if (found === undefined) goWithout(rules, NO_CREDENTIAL, rules.lacking);
  else addTo(draft, found);
}

/** Goes through the alternatives in order, without a promise for as long as none is needed. */
function choose(
  alternatives: readonly (readonly CredentialSlot[])[],
  request: AuthorizeRequest,
  from: number,
): Found | Promise<Found> {
  for (let index = from; index < alternatives.length; index++) {
    const found = gather(alternatives[index] ?? [], request);
    if (found instanceof Promise) {
      return found.then((additions) => additions ?? choose(alternatives, request, index + 1));
    }
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Asks one slot after the other, those for which nothing is `got` yet: what comes later is not asked for when something is missing. */
function gather(
  slots: readonly CredentialSlot[],
  request: AuthorizeRequest,
  got: Addition[] = [],
): Found | Promise<Found> {
  for (let index = got.length; index < slots.length; index++) {
    const slot = slots[index] as CredentialSlot;
    const answer = slot.fixed ?? slot.ask(request);
    if (answer instanceof Promise) {
      return answer.then((addition) =>
        addition === undefined ? undefined : gather(slots, request, [...got, addition]),
      );
    }
    if (answer === undefined) return undefined;
    got.push(answer);
  }
  return clash(got) ? undefined : got;
}

function goWithout(rules: SecurityRules, reason: string, named = rules.wanted): void {
  if (!rules.optional) throw missing(named, reason);
}

function missing(alternatives: SecurityRules["wanted"], reason: string): CallError {
  const ways = alternatives.slice(0, 5).map((names) => showNames(names, " and "));
  const message = `This operation needs credentials (${ways.join(", or ")}), and ${reason}.`;
  if (reason !== NO_CREDENTIAL) return unauthenticated(message);
  const failure = { reason: "no-credential", advice: reason } as const;
  return new CallError("UNAUTHENTICATED", message, { retryable: false, failure, stack: false });
}

/** What an operation asks for, with the credentials that there are. */
interface SecurityRules {
  /** What is added to every call, where it is always the same. */
  readonly fixed: readonly Addition[] | undefined;
  /** Alternatives for which every scheme has a credential, in order. */
  readonly alternatives: readonly (readonly CredentialSlot[])[];
  /** Whether a call may go without. */
  readonly optional: boolean;
  /** Whether another credential may be had than the one that was refused. */
  readonly renewable: boolean;
  /** The names of each alternative, as the document declares them. */
  readonly wanted: readonly (readonly string[])[];
  /** Those of them that have no credential; all of an alternative where each has one. */
  readonly lacking: readonly (readonly string[])[];
}

/** Reads what an operation asks for; done once for each. */
function readSecurityRules(plan: OperationPlan, credentials: SchemeCredentials): SecurityRules {
  const undeclared = plan.security.length === 0 ? credentials.undeclared() : [];
  const declared = plan.security.map((alternative) =>
    Object.entries(alternative).map(([name, scopes]): NamedScheme => {
      const scheme = Object.hasOwn(plan.schemes, name) ? plan.schemes[name] : undefined;
      return { name, plan: scheme ?? { type: "unknown" }, scopes };
    }),
  );
  const wanted = declared.filter((schemes) => schemes.length > 0);
  const bound = [...wanted, ...undeclared.map((scheme) => [scheme])]
    .map((schemes) => schemes.map((scheme) => credentials.bind(scheme)))
    .filter((slots): slots is CredentialSlot[] => !slots.includes(undefined));
  const usable = bound.filter((slots) => !clash(slots.flatMap(({ fixed }) => fixed ?? [])));
  const [first] = usable;
  const fixed = first?.every((slot) => slot.fixed !== undefined)
    ? first.flatMap((slot) => slot.fixed ?? [])
    : undefined;
  return {
    fixed,
    alternatives: usable,
    optional: wanted.length < declared.length || plan.security.length === 0,
    renewable: fixed === undefined && usable.length > 0,
    wanted: wanted.map(namesOf),
    lacking: wanted.map((schemes) => {
      const lacking = schemes.filter((scheme) => credentials.bind(scheme) === undefined);
      return namesOf(lacking.length > 0 ? lacking : schemes);
    }),
  };
}

function namesOf(schemes: readonly NamedScheme[]): string[] {
  return schemes.map(({ name }) => name);
}

/** Which kinds of the option serve a scheme, in order. */
const KINDS_FOR = {
  apiKey: ["apiKey"],
  basic: ["basic"],
  bearer: ["bearer"],
  oauth2: ["oauth2", "bearer"],
  openIdConnect: ["oauth2", "bearer"],
} as const satisfies Record<SchemeUse, readonly string[]>;

const KINDS: readonly string[] = ["bearer", "basic", "apiKey", "oauth2"];

/** Finds the credential for each scheme of a document. */
class SchemeCredentials {
  readonly #auth: ReadonlyMap<string, Credential>;
  readonly #schemes: ReadonlyMap<string, SecuritySchemePlan>;
  readonly #settings: SlotSettings;

  /** Throws a `TypeError` for a credential that can never be used. */
  constructor(
    auth: AuthOptions,
    schemes: Readonly<Record<string, SecuritySchemePlan>>,
    settings: SlotSettings,
  ) {
    if (typeof auth !== "object" || auth === null || Array.isArray(auth)) {
      throw new TypeError("auth must be an object: credentials by the name of their scheme, or by kind.");
    }
    this.#auth = new Map(Object.entries(auth));
    this.#schemes = new Map(Object.entries(schemes));
    this.#settings = settings;
    for (const [key, credential] of this.#auth) {
      this.#checkKey(key);
      checkGiven(key, credential);
    }
    const declared = [...this.#schemes].map(([name, plan]): NamedScheme => ({ name, plan, scopes: [] }));
    this.#checkSchemes([...declared, ...this.undeclared()]);
  }

  /** The schemes of a document that declares none: what the user says stands alone. */
  undeclared(): NamedScheme[] {
    if (this.#schemes.size > 0) return [];
    return ["bearer", "basic"]
      .filter((kind) => this.#auth.has(kind))
      .map((kind) => ({ name: kind, plan: { type: "http", scheme: kind }, scopes: [] }));
  }

  /** Binds a scheme to its credential; nothing where it has none that fits. */
  bind(scheme: NamedScheme): CredentialSlot | undefined {
    const found = this.#find(scheme);
    const slot = found && bindCredential(scheme, found.credential, this.#settings);
    return typeof slot === "string" ? undefined : slot;
  }

  /** Gives the kinds that are there and serve no scheme of the document. */
  unused(): string[] {
    const used = new Set(this.undeclared().map(({ name }) => name));
    for (const [name, plan] of this.#schemes) {
      const found = this.#find({ name, plan, scopes: [] });
      if (found !== undefined) used.add(found.key);
    }
    return [...this.#auth.keys()].filter((key) => !used.has(key));
  }

  #find({ name, plan }: NamedScheme): { readonly key: string; readonly credential: Credential } | undefined {
    const use = useOf(plan);
    const own = this.#auth.get(name);
    if (own !== undefined && (this.#schemes.has(name) || this.#schemes.size === 0)) {
      return { key: name, credential: own };
    }
    for (const key of use === undefined ? [] : KINDS_FOR[use]) {
      const credential = this.#schemes.has(key) ? undefined : this.#auth.get(key);
      // A bearer credential is at home with bearer schemes; for the others it serves where it is a token.
      const fits = key !== "bearer" || use === "bearer" || !isOAuthForm(credential);
      if (credential !== undefined && fits) return { key, credential };
    }
    return undefined;
  }

  #checkKey(key: string): void {
    if (this.#schemes.has(key) || KINDS.includes(key)) return;
    const declared = [...this.#schemes.keys()];
    const known = declared.length === 0 ? "declares no schemes" : `declares ${showNames(declared)}`;
    const shown = JSON.stringify(key.slice(0, 80));
    throw new TypeError(
      `auth has ${shown}, which is no scheme: the document ${known}; kinds are ${showNames(KINDS)}.`,
    );
  }

  /** One of several schemes that a kind serves may say nothing about where tokens are had; all of them may not. */
  #checkSchemes(schemes: readonly NamedScheme[]): void {
    const served = new Set<string>();
    const misfits: { readonly key: string; readonly message: string }[] = [];
    for (const scheme of schemes) {
      const found = this.#find(scheme);
      if (found === undefined) continue;
      const slot = this.#bindUsable(scheme, found.credential);
      if (typeof slot !== "string") {
        served.add(found.key);
        continue;
      }
      const isByKind = found.key !== scheme.name;
      const serving = isByKind ? ` (for ${showNames([scheme.name])})` : "";
      const message = `auth.${found.key.slice(0, 80)}${serving} ${slot}.`;
      if (!isByKind || !slot.startsWith(UNUSABLE)) throw new TypeError(message);
      misfits.push({ key: found.key, message });
    }
    const hopeless = misfits.find(({ key }) => !served.has(key));
    if (hopeless !== undefined) throw new TypeError(hopeless.message);
  }

  #bindUsable(scheme: NamedScheme, credential: Credential): CredentialSlot | string {
    if (useOf(scheme.plan) === undefined) return "is for a scheme that cannot be used here";
    return bindCredential(scheme, credential, this.#settings);
  }
}

/** What is not there most often comes from an environment that lacks it; without a word, calls would go out without it. */
function checkGiven(key: string, credential: unknown): void {
  if (credential !== undefined && credential !== null) return;
  const name = `auth.${key.slice(0, 80)}`;
  throw new TypeError(`${name} must be a credential; it is ${credential}. Leave it out to go without one.`);
}

/** The call that credentials are for. */
interface AuthorizeRequest {
  readonly operationId: string;
  /** Where the request goes. */
  readonly origin: string;
  readonly context: OperationContext;
  /** The server said 401 to what was given before: something new is wanted. */
  readonly refused: boolean;
}

/** What is added, now or later; nothing where there is no credential for this call. */
type CredentialAnswer = Addition | undefined | Promise<Addition | undefined>;

/** One scheme with its credential: the same for every call, or asked for each. */
type CredentialSlot =
  | { readonly fixed: Addition }
  | { readonly fixed?: undefined; readonly ask: (request: AuthorizeRequest) => CredentialAnswer };

/** What a scheme takes; nothing for those that no credential of ours can satisfy. */
type SchemeUse = "apiKey" | "basic" | "bearer" | "oauth2" | "openIdConnect";

/** A scheme as an operation names it. */
interface NamedScheme {
  readonly name: string;
  readonly plan: SecuritySchemePlan;
  readonly scopes: readonly string[];
}

/** What every slot shares. */
interface SlotSettings {
  readonly sources: TokenSources;
  /** Where the document was read from. */
  readonly base: URL | undefined;
}

/** How the words begin for a credential that is right, and a scheme that does not say where tokens are had. */
const UNUSABLE = "cannot be used";

/** Tells what a scheme takes. */
function useOf(scheme: SecuritySchemePlan): SchemeUse | undefined {
  switch (scheme.type) {
    case "apiKey":
      return canHoldKey(scheme) ? "apiKey" : undefined;
    case "http": {
      const kind = scheme.scheme.toLowerCase();
      return kind === "basic" || kind === "bearer" ? kind : undefined;
    }
    case "oauth2":
    case "openIdConnect":
      return scheme.type;
    case "mutualTLS":
    case "unknown":
      return undefined;
  }
}

/** Binds a credential to a scheme, or says in words that follow its name why it does not fit. */
function bindCredential(
  scheme: NamedScheme,
  credential: Credential,
  settings: SlotSettings,
): CredentialSlot | string {
  if (typeof credential !== "function") return bindValue(scheme, credential, settings);
  const { name, scopes } = scheme;
  const read = (value: CredentialValue | undefined, request: AuthorizeRequest): CredentialAnswer => {
    if (value === undefined || value === null) return undefined;
    const slot = bindValue(scheme, value, settings);
    if (typeof slot !== "string") return slot.fixed ?? slot.ask(request);
    throw unauthenticated(`What the credential function of ${showScheme(name)} gave ${slot}.`);
  };
  const ask = (request: AuthorizeRequest): CredentialAnswer => {
    let given: ReturnType<typeof credential>;
    try {
      given = credential({ scheme: name, scopes, ...request });
    } catch (thrown) {
      throw functionFailure(name, thrown);
    }
    if (!isThenable(given)) return read(given, request);
    const answered = Promise.resolve(given).catch((thrown: unknown) => {
      throw functionFailure(name, thrown);
    });
    return waitFor(answered, request.context.signal).then((value) => read(value, request));
  };
  return { ask };
}

function bindValue(
  scheme: NamedScheme,
  value: CredentialValue,
  settings: SlotSettings,
): CredentialSlot | string {
  const { plan } = scheme;
  const use = useOf(plan);
  if (use === undefined) return "is for a scheme that cannot be used here";
  if (plan.type === "apiKey") {
    if (typeof value !== "string") return "must be the key, a string";
    return keyMisfit(plan, value) ?? { fixed: addKey(plan, value) };
  }
  if (use === "basic") {
    if (!isBasicForm(value)) return "must be a name and a password: { username, password }";
    return basicMisfit(value) ?? { fixed: addBasic(value) };
  }
  if (typeof value === "string") return tokenMisfit(value) ?? { fixed: addBearer(value) };
  if (!isOAuthForm(value)) return "must be a token, or how to get one: { clientId, clientSecret }";
  return oauthMisfit(value) ?? bindOAuth(scheme, value, settings);
}

function bindOAuth(
  scheme: NamedScheme,
  value: OAuthCredential,
  settings: SlotSettings,
): CredentialSlot | string {
  const { name, plan, scopes } = scheme;
  const address = findTokenAddress(plan, value, settings.base);
  if (typeof address === "string") return `${UNUSABLE}: ${address}`;
  const source = settings.sources.get(name, value, address);
  return {
    ask: ({ context, refused }) => {
      const token = source.token({ scopes, context, refused });
      return typeof token === "string" ? addBearer(token) : token.then(addBearer);
    },
  };
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === "object" && value !== null && "then" in value;
}
