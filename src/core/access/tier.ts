import { CallError } from "../errors/errors.ts";
import { parsePointer } from "../json/json-pointer.ts";
import type { AnyOperation, GatedFeature, Tier } from "../operation/operation-types.ts";
import { isObject, type JsonSchema } from "../schema/json-schema.ts";
import type { Identity } from "./identity.ts";

/** The plans, lowest first. */
export const TIERS = ["community", "pro", "enterprise"] as const satisfies readonly Tier[];

/** What a refused caller would get with a higher plan; the `details` of `UPGRADE_REQUIRED` list them. */
interface Hint {
  readonly feature: string;
  readonly tier: Tier;
  readonly reason: string;
}

interface Gate extends Hint {
  readonly path: readonly string[] | undefined;
}

/** Reads the plan of a caller: no identity, no tier or one nobody knows is the lowest, never a higher one. */
export function tierOf(identity: Identity | undefined): Tier {
  return TIERS.find((tier) => tier === identity?.tier) ?? "community";
}

/** Which plans may use an operation and each of its features, read once when it is registered. */
export class TierRule {
  readonly #id: string;
  readonly #tier: Tier;
  readonly #gates: ReadonlyMap<string, Gate>;

  constructor(
    { tier = "community", features: given }: Pick<AnyOperation, "tier" | "features">,
    id: string,
    input: JsonSchema,
  ) {
    const features: readonly GatedFeature[] = given ?? [];
    if (!Array.isArray(features)) throw new TypeError(`Operation "${id}": features must be a list.`);
    this.#id = id;
    this.#tier = tier;
    this.#gates = new Map(features.map((feature) => [feature.name, readGate(feature, id, input)]));
    if (this.#gates.size < features.length)
      throw new TypeError(`Operation "${id}": a feature is listed twice.`);
  }

  /** The error this call is refused with, or nothing when the plan includes all it asks for. */
  refusal(identity: Identity | undefined, input: unknown): CallError | undefined {
    const held = tierOf(identity);
    if (!includes(held, this.#tier)) {
      const reason = `"${this.#id}" is part of the ${this.#tier} tier.`;
      return refused(this.#id, [{ feature: this.#id, tier: this.#tier, reason }]);
    }
    const missing: Hint[] = [];
    for (const gate of this.#gates.values()) {
      if (!includes(held, gate.tier) && isAskedFor(input, gate)) missing.push(hintOf(gate));
    }
    return missing.length > 0 ? refused(this.#id, missing) : undefined;
  }

  /** The same for one feature that the handler finds it needs; one that was not declared is a mistake. */
  refusalOf(feature: string, identity: Identity | undefined): CallError | undefined {
    const gate = this.#gates.get(feature);
    if (gate === undefined) throw undeclared(this.#id, feature);
    return includes(tierOf(identity), gate.tier) ? undefined : refused(this.#id, [hintOf(gate)]);
  }
}

/** The mistake of asking for a feature the operation does not declare. */
export function undeclared(id: string, feature: string): TypeError {
  return new TypeError(`Operation "${id}" declares no feature "${feature}".`);
}

function includes(held: Tier, wanted: Tier): boolean {
  return TIERS.indexOf(held) >= TIERS.indexOf(wanted);
}

/** Something is there, and it does not say no; what cannot be seen without running code counts as there. */
function isAskedFor(input: unknown, { path }: Gate): boolean {
  if (path === undefined) return false;
  let value = input;
  try {
    for (const key of path) {
      if (typeof value !== "object" || value === null || !(key in value)) return false;
      const own = Object.getOwnPropertyDescriptor(value, key);
      if (own === undefined || !("value" in own)) return true;
      value = own.value;
    }
  } catch {
    return true;
  }
  return value !== undefined && value !== null && value !== false;
}

function hintOf({ feature, tier, reason }: Gate): Hint {
  return { feature, tier, reason };
}

function refused(id: string, upgradeHints: readonly Hint[]): CallError {
  const names = upgradeHints.map(({ feature, tier }) => `"${feature}" (${tier})`).join(", ");
  const message = `This call of "${id}" needs a higher tier: ${names}.`;
  return new CallError("UPGRADE_REQUIRED", message, { details: { upgradeHints }, stack: false });
}

const FIELDS = ["name", "tier", "reason", "pointer"];

function readGate(feature: GatedFeature, id: string, input: JsonSchema): Gate {
  // A misspelt rule would leave the door open, so nothing unknown is let through.
  const unknown = Object.keys(feature).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) throw new TypeError(`Operation "${id}": a feature has no "${unknown}".`);
  const { name, tier, reason, pointer } = feature;
  if (typeof name !== "string" || name === "") {
    throw new TypeError(`Operation "${id}": a feature needs a name.`);
  }
  if (!TIERS.includes(tier)) {
    throw new TypeError(
      `Operation "${id}": the tier of feature "${name}" must be one of ${TIERS.join(", ")}.`,
    );
  }
  if (pointer !== undefined && !(typeof pointer === "string" && pointer.startsWith("/"))) {
    throw new TypeError(
      `Operation "${id}": the pointer of feature "${name}" must be a JSON pointer, such as "/deep".`,
    );
  }
  const path = pointer === undefined ? undefined : parsePointer(pointer);
  if (path !== undefined && !mayHold(input, path)) {
    throw new TypeError(
      `Operation "${id}": the pointer "${pointer}" of feature "${name}" leads to nothing its inputSchema knows.`,
    );
  }
  return { feature: name, tier, reason: reason ?? `"${name}" is part of the ${tier} tier.`, path };
}

/** Keywords by which a schema may know more properties than it lists. */
const OPEN_ENDED = [
  "$ref",
  "$dynamicRef",
  "allOf",
  "anyOf",
  "oneOf",
  "if",
  "patternProperties",
  "dependentSchemas",
];

/** Tells whether a schema knows what a pointer leads to, or may; a misspelt pointer would leave the door open. */
function mayHold(schema: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined || !isObject(schema) || !isObject(schema["properties"])) return true;
  if (OPEN_ENDED.some((keyword) => Object.hasOwn(schema, keyword))) return true;
  return Object.hasOwn(schema["properties"], key) && mayHold(schema["properties"][key], rest);
}
