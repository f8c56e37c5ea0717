import type { SecuritySchemePlan } from "../plan.ts";
import { isOAuthForm } from "./credential-forms.ts";
import {
  bindCredential,
  type CredentialSlot,
  type NamedScheme,
  type SchemeUse,
  type SlotSettings,
  UNUSABLE,
  useOf,
} from "./credential-slot.ts";
import type { AuthOptions, Credential } from "./credentials.ts";
import { showNames } from "./unauthenticated.ts";

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
export class SchemeCredentials {
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
