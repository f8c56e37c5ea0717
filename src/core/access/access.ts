import { CallError } from "../errors/errors.ts";
import { parsePointer } from "../json/json-pointer.ts";
import type { HeldIdentity } from "./identity.ts";

/** Who may call an operation. Declaring it at all, even empty, asks for an identity. */
export interface AccessControl {
  readonly scopes?: {
    /** Every one of these must be held. */
    readonly allOf?: readonly string[];
    /** At least one of these must be held. */
    readonly anyOf?: readonly string[];
  };
  /** Every one of these must hold. */
  readonly resource?: ResourceRule | readonly ResourceRule[];
}

/**
 * Binds a call to a resource named in its input, which the identity must hold. The rule reads the input as given, own
 * data properties only; a schema that rewrites the id afterwards is not seen by it.
 */
export interface ResourceRule {
  /** JSON pointer to the resource id, a string, in the input. */
  readonly pointer: string;
  /** The key of `Identity.resources` to look under. */
  readonly type: string;
}

interface ResourcePath {
  readonly path: readonly string[];
  readonly type: string;
}

/**
 * The access rules of one operation, read once when it is registered.
 *
 * Without an identity the answer is `UNAUTHENTICATED`, with one that does not reach it is `ACCESS_DENIED`. `admits` is what
 * listing asks and `refusal` what calling asks: an operation is listed exactly when some input could get past `refusal`.
 */
export class AccessRule {
  readonly #id: string;
  readonly #allOf: readonly string[];
  readonly #anyOf: readonly string[] | undefined;
  readonly #resources: readonly ResourcePath[];

  constructor(access: AccessControl, id: string) {
    refuseUnknown(access, ["scopes", "resource"], `Operation "${id}": access`);
    const { scopes = {}, resource = [] } = access;
    refuseUnknown(scopes, ["allOf", "anyOf"], `Operation "${id}": access.scopes`);
    this.#id = id;
    this.#allOf = readScopes(scopes.allOf, "allOf", id) ?? [];
    this.#anyOf = readScopes(scopes.anyOf, "anyOf", id);
    this.#resources = [resource].flat().map((rule) => readResource(rule, id));
  }

  /** Tells whether this identity could call the operation with some input. */
  admits(identity: HeldIdentity | undefined): boolean {
    return identity !== undefined && this.#hasScopes(identity) && this.#hasResources(identity);
  }

  /** The error this call is refused with, or nothing when it may go on. */
  refusal(identity: HeldIdentity | undefined, input: unknown): CallError | undefined {
    if (identity === undefined) {
      return refused("UNAUTHENTICATED", `Calling "${this.#id}" needs an identity, and the call has none.`);
    }
    if (!this.#hasScopes(identity)) {
      const message = `The caller lacks a scope that "${this.#id}" asks for.`;
      const failure = {
        reason: "caller-scope",
        scopes: lackingScopes({ allOf: this.#allOf, anyOf: this.#anyOf ?? [] }, identity.scopes),
      } as const;
      return new CallError("ACCESS_DENIED", message, { stack: false, failure });
    }
    if (!this.#resources.every((rule) => holdsResource(identity, rule, input))) {
      return refused(
        "ACCESS_DENIED",
        `The caller may not use the resource this call of "${this.#id}" names.`,
      );
    }
    return undefined;
  }

  #hasScopes({ scopes }: HeldIdentity): boolean {
    if (!this.#allOf.every((scope) => scopes.includes(scope))) return false;
    return this.#anyOf === undefined || this.#anyOf.some((scope) => scopes.includes(scope));
  }

  #hasResources({ resources }: HeldIdentity): boolean {
    return this.#resources.every(({ type }) => (resources[type]?.length ?? 0) > 0);
  }
}

/** The scopes of a rule that are not held; of alternatives of which none is, the first. */
export function lackingScopes(
  { allOf = [], anyOf = [] }: NonNullable<AccessControl["scopes"]>,
  held: readonly string[] = [],
): readonly string[] {
  const isOpen = !anyOf.some((scope) => held.includes(scope));
  return [...allOf, ...(isOpen ? anyOf.slice(0, 1) : [])].filter((scope) => !held.includes(scope));
}

function refused(code: "UNAUTHENTICATED" | "ACCESS_DENIED", message: string): CallError {
  return new CallError(code, message, { stack: false });
}

function holdsResource({ resources }: HeldIdentity, { path, type }: ResourcePath, input: unknown): boolean {
  const held = resources[type];
  const wanted = held === undefined ? undefined : readOwn(input, path);
  return held !== undefined && typeof wanted === "string" && (held === "*" || held.includes(wanted));
}

/** Follows own data properties only: no getter runs, nothing inherited counts, and nothing thrown gets out. */
function readOwn(value: unknown, path: readonly string[]): unknown {
  let current = value;
  try {
    for (const key of path) {
      if (typeof current !== "object" || current === null) return undefined;
      current = Object.getOwnPropertyDescriptor(current, key)?.value;
    }
    return current;
  } catch {
    return undefined;
  }
}

/** A misspelt rule would leave the door open, so nothing unknown is let through. */
function refuseUnknown(value: unknown, known: readonly string[], what: string): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${what} must be an object.`);
  }
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw new TypeError(`${what} has no "${unknown}"; it may hold ${known.join(" and ")}.`);
}

function readScopes(list: unknown, what: string, id: string): readonly string[] | undefined {
  if (list === undefined) return undefined;
  const usable = Array.isArray(list) && list.length > 0 && list.every(isName);
  if (!usable) throw new TypeError(`Operation "${id}": access.scopes.${what} must list at least one scope.`);
  return [...list];
}

function readResource(rule: ResourceRule, id: string): ResourcePath {
  refuseUnknown(rule, ["pointer", "type"], `Operation "${id}": access.resource`);
  const { pointer, type } = rule;
  if (typeof pointer !== "string" || !(pointer === "" || pointer.startsWith("/"))) {
    throw new TypeError(
      `Operation "${id}": access.resource.pointer must be a JSON pointer, such as "/projectId".`,
    );
  }
  if (!isName(type)) throw new TypeError(`Operation "${id}": access.resource.type must be a string.`);
  return { path: parsePointer(pointer), type };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
