/** Who is asking, as the transport that authenticated them says; a call takes a frozen copy. */
export interface Identity {
  readonly subject: string;
  readonly scopes?: readonly string[];
  /** Resource ids by type; `"*"` stands for all of that type. */
  readonly resources?: Readonly<Record<string, readonly string[] | "*">>;
  readonly tier?: string;
  /** Anything else the transport knows, copied as structured data; access rules never read it. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Unix epoch milliseconds until which this is known: streams that it opened end then. Left out where it does not expire. */
  readonly expiresAt?: number;
}

/** An identity an operation brings along for the calls its handler makes. */
export type Authority = Omit<Identity, "subject" | "expiresAt"> & {
  /** @default the id of the operation */
  readonly subject?: string;
};

/**
 * Names a caller: the subject, and who vouches for it (`iss` of the claims), so that a renewed token with other scopes is still the same
 * caller. All anonymous callers have the empty name.
 */
export function ownerOf(identity: Identity | undefined): string {
  if (identity === undefined) return "";
  const issuer = identity.claims?.["iss"];
  return JSON.stringify([identity.subject, typeof issuer === "string" ? issuer : null]);
}

/** What a caller may do. */
export type Rights = Pick<Identity, "scopes" | "resources" | "tier">;

/** Tells whether a caller still has every right that they, or somebody, had before; another tier is another right. */
export function holdsRights(identity: Rights | undefined, before: Rights | undefined): boolean {
  const { scopes = [], resources = {}, tier } = identity ?? {};
  if (tier !== before?.tier || !(before?.scopes ?? []).every((scope) => scopes.includes(scope))) return false;
  return Object.entries(before?.resources ?? {}).every(([type, ids]) => {
    const held = Object.hasOwn(resources, type) ? resources[type] : undefined;
    return held === "*" || (ids !== "*" && ids.every((id) => held?.includes(id) === true));
  });
}

const NOTHING: readonly string[] = Object.freeze([]);
const NO_RESOURCES: Readonly<Record<string, readonly string[] | "*">> = Object.freeze(Object.create(null));

/** A frozen copy of an identity: code that still holds the original cannot raise it any more. */
export class HeldIdentity implements Identity {
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly resources: Readonly<Record<string, readonly string[] | "*">>;
  declare readonly tier?: string;
  declare readonly claims?: Readonly<Record<string, unknown>>;
  declare readonly expiresAt?: number;
  readonly #held = true;

  private constructor(identity: Identity) {
    const { subject, scopes, resources, tier, claims, expiresAt } = identity;
    if (typeof subject !== "string" || subject === "") {
      throw new TypeError("An identity needs a subject: a string that is not empty.");
    }
    if (tier !== undefined && typeof tier !== "string") {
      throw new TypeError("The tier of an identity must be a string.");
    }
    if (expiresAt !== undefined && !Number.isFinite(expiresAt)) {
      throw new TypeError("The expiresAt of an identity must be a number of milliseconds.");
    }
    this.subject = subject;
    this.scopes = scopes === undefined ? NOTHING : copyStrings(scopes, "scopes");
    this.resources = resources === undefined ? NO_RESOURCES : copyResources(resources);
    if (tier !== undefined) this.tier = tier;
    if (claims !== undefined) this.claims = freezeDeep(structuredClone(claims));
    if (expiresAt !== undefined) this.expiresAt = expiresAt;
    Object.freeze(this);
  }

  /** Takes the copy; one that is a copy already comes back as it is. */
  static of(identity: Identity): HeldIdentity {
    if (typeof identity !== "object" || identity === null) {
      throw new TypeError(
        "An identity must be an object with a subject; leave it out for an anonymous call.",
      );
    }
    return #held in identity ? (identity as HeldIdentity) : new HeldIdentity(identity);
  }
}

function copyStrings(list: readonly string[], what: string): readonly string[] {
  if (!Array.isArray(list)) throw new TypeError(`The ${what} of an identity must be an array of strings.`);
  const copy = Array.from<unknown>(list);
  if (!copy.every((item) => typeof item === "string")) {
    throw new TypeError(`The ${what} of an identity must be strings.`);
  }
  return Object.freeze(copy);
}

function copyResources(resources: NonNullable<Identity["resources"]>): typeof NO_RESOURCES {
  if (typeof resources !== "object" || resources === null) {
    throw new TypeError("The resources of an identity must be an object of id lists by type.");
  }
  const copy: Record<string, readonly string[] | "*"> = Object.create(null);
  for (const type of Object.keys(resources)) {
    const ids = resources[type];
    if (ids !== undefined) copy[type] = ids === "*" ? "*" : copyStrings(ids, `resources of type "${type}"`);
  }
  return Object.freeze(copy);
}

/** Freezes fresh structured data all the way down; cycles end at what is frozen already. */
function freezeDeep<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  for (const key of Object.keys(value)) freezeDeep((value as Record<string, unknown>)[key]);
  return value;
}
