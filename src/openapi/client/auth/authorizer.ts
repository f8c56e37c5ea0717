import type { CallError } from "../../../core/errors/errors.ts";
import type { SourceSecrets } from "../../../core/secrets/source-secrets.ts";
import type { RequestDraft } from "../http-message.ts";
import type { OperationPlan, SecuritySchemePlan } from "../plan.ts";
import { type Addition, addTo, clash } from "./addition.ts";
import type { AuthorizeRequest, CredentialSlot } from "./credential-slot.ts";
import type { AuthOptions } from "./credentials.ts";
import { SchemeCredentials } from "./scheme-credentials.ts";
import { readSecurityRules, type SecurityRules } from "./security-rules.ts";
import type { TokenSources } from "./token-sources.ts";
import { showNames, unauthenticated } from "./unauthenticated.ts";

/** What an authorizer knows of a document. */
export interface AuthorizedApi {
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
  /** Where the document was read from; relative addresses are relative to it. */
  readonly location?: URL | undefined;
}

/** What an authorizer works with. */
export interface AuthorizerOptions {
  /** Without it, requests go without credentials, whatever the document says. */
  readonly auth?: AuthOptions | undefined;
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
  authorize(plan: OperationPlan, draft: RequestDraft, request: AuthorizeRequest): void | Promise<void>;
  /** Tells whether a 401 is worth one more try, with `refused`. */
  mayRetry(plan: OperationPlan): boolean;
}

/** Makes what adds credentials to the requests of a document; throws a `TypeError` for credentials that cannot be used. */
export function createAuthorizer(api: AuthorizedApi, options: AuthorizerOptions): Authorizer {
  const { auth, origins, tokens, secrets, warn } = options;
  if (auth === undefined) return { authorize: () => undefined, mayRetry: () => false };
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
    authorize: (plan, draft, request) => {
      const rules = rulesOf(plan);
      if (!origins(draft.origin))
        return goWithout(
          rules,
          "credentials go to the API's own origin and to those named in authOrigins alone",
        );
      if (rules.fixed !== undefined) return addTo(draft, rules.fixed);
      const found = choose(rules.alternatives, request, 0);
      const finishWith = (additions: Found): void => {
        for (const { name, value, place } of additions ?? []) noteCredential(secrets, place, name, value);
        finish(rules, draft, additions);
      };
      return found instanceof Promise ? found.then(finishWith) : finishWith(found);
    },
    mayRetry: (plan) => rulesOf(plan).renewable,
  };
}

/** The value of a header comes with a word before it, those of queries and cookies are escaped. */
function noteCredential(secrets: SourceSecrets, place: Addition["place"], name: string, value: string): void {
  if (place !== "header") secrets.obtained(unescaped(value));
  else if (name === "authorization") secrets.obtainedHeader(name, value);
  else secrets.obtained(value);
}

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

type Found = readonly Addition[] | undefined;

function finish(rules: SecurityRules, draft: RequestDraft, found: Found): void {
  if (found === undefined) goWithout(rules, "the option auth has nothing for it", rules.lacking);
  else addTo(draft, found);
}

/** Goes through the alternatives in order, without a promise for as long as none is needed. */
function choose(
  alternatives: readonly (readonly CredentialSlot[])[],
  request: AuthorizeRequest,
  from: number,
): Found | Promise<Found> {
  for (let index = from; index < alternatives.length; index++) {
    const found = gather(alternatives[index] ?? [], request, 0, []);
    if (found instanceof Promise) {
      return found.then((additions) => additions ?? choose(alternatives, request, index + 1));
    }
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Asks one after the other: what comes later is not asked for when something is missing. */
function gather(
  slots: readonly CredentialSlot[],
  request: AuthorizeRequest,
  from: number,
  got: Addition[],
): Found | Promise<Found> {
  for (let index = from; index < slots.length; index++) {
    const slot = slots[index] as CredentialSlot;
    const answer = slot.fixed ?? slot.ask(request);
    if (answer instanceof Promise) {
      return answer.then((addition) =>
        addition === undefined ? undefined : gather(slots, request, index + 1, [...got, addition]),
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
  return unauthenticated(`This operation needs credentials (${ways.join(", or ")}), and ${reason}.`);
}
