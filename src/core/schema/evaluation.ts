import { counted } from "../text/nearest-name.ts";
import { shortText } from "../text/truncate-text.ts";
import { countCodePoints, type KeyMeter, presentKeys, type WorkMeter } from "./compare-values.ts";
import { MAX_ISSUES } from "./limits.ts";
import type { SchemaResource } from "./schema-index.ts";
import { NOTHING, type SchemaIssue } from "./schema-issue.ts";
import { type SchemaNode, TYPE_BITS } from "./schema-node.ts";

/** Alternatives tried again to say what each of them lacks, in one list of issues. */
const MAX_EXPLAINED_BRANCHES = 100;

/** References followed before answers are remembered: few values need it, and remembering costs. */
const STEPS_BEFORE_MEMORY = 1_000;

/** Objects normalised before it is remembered which of them need no change. */
const PARTS_BEFORE_MEMORY = 200;

/** Keys or items from which on looking one up takes longer; the keys of such an object are kept for the next subschema. */
export const LARGE = 64;
/** Steps of work that looking at one of them counts as. */
export const STEPS_IN_LARGE = 4;

const MAX_POINTER = 256;

/** Issues gathered before all but the shortest are dropped. */
const MAX_GATHERED = 500;

/** Thrown inside an evaluation that meets a limit; it never leaves the schema module. */
export class LimitReached extends Error {
  readonly limit: "depth" | "pattern" | "steps";

  constructor(limit: LimitReached["limit"]) {
    super(limit);
    this.limit = limit;
  }
}

/** Which parts of one value some subschema has looked at, for `unevaluatedProperties` and `unevaluatedItems`. */
export class Evaluated {
  allProperties = false;
  readonly properties = new Set<string>();
  allItems = false;
  /** Items before this index were looked at. */
  items = 0;
  readonly singleItems = new Set<number>();

  merge(other: Evaluated, meter: WorkMeter): void {
    const size = other.properties.size + other.singleItems.size;
    meter.step(size < LARGE ? size : STEPS_IN_LARGE * size);
    this.allProperties ||= other.allProperties;
    this.allItems ||= other.allItems;
    this.items = Math.max(this.items, other.items);
    for (const key of other.properties) this.properties.add(key);
    for (const index of other.singleItems) this.singleItems.add(index);
  }
}

/** How much further a check may go; shared by all that takes part in it. */
export interface Budget {
  /** Steps of work that are left. */
  steps: number;
  /** Levels the value may still go down. */
  depth: number;
}

/** What a schema allows in one place by `enum` or `const`, and whether the value there is allowed. */
export interface AllowedChoice {
  readonly values: readonly unknown[];
  readonly isMet: boolean;
}

/** The state of checking one value: limits, dynamic scope, and the issues when they are wanted. */
export class Evaluation implements KeyMeter {
  issues: SchemaIssue[] | undefined;
  /** Which members have values of their own in the alternative that is explained, and whether the value has one of these. */
  choices: Map<string, AllowedChoice> | undefined;
  readonly scope: SchemaResource[] = [];
  readonly budget: Budget;
  #branchesLeft = MAX_EXPLAINED_BRANCHES;
  #stepsUnremembered = STEPS_BEFORE_MEMORY;
  #answers: Map<SchemaNode, Map<unknown, boolean>> | undefined;
  /** Objects that a node was found to leave as they are, once enough parts were normalised to make it worth while. */
  #unchanged: Map<SchemaNode, WeakSet<object>> | undefined;
  #partsUnremembered = PARTS_BEFORE_MEMORY;
  /** The keys of large objects, as several subschemas may look at one. */
  #keys: Map<object, readonly string[]> | undefined;
  /** Set once several subschemas spoke about one value, and may have said the same. */
  mayRepeat = false;

  constructor(budget: Budget, collect: boolean) {
    this.issues = collect ? [] : undefined;
    this.budget = budget;
  }

  /** Counts work: a subschema applied to a part, a comparison, a name, a pattern tried. */
  step(cost = 1): void {
    this.budget.steps -= cost;
    if (this.budget.steps < 0) throw new LimitReached("steps");
  }

  /** The keys of an object that JSON would write, each counted as a step of work, or several where a large object's are listed. */
  keysOf(value: object): readonly string[] {
    const known = this.#keys?.get(value);
    const keys = known ?? presentKeys(value);
    this.step(keys.length);
    if (known !== undefined || keys.length < LARGE) return keys;
    this.#keys ??= new Map();
    this.#keys.set(value, keys);
    this.step((STEPS_IN_LARGE - 1) * keys.length);
    return keys;
  }

  /** Tells whether there is room to explain one more alternative; without a bound, alternatives inside alternatives multiply. */
  mayExplainBranch(): boolean {
    return this.#branchesLeft-- > 0;
  }

  /**
   * What a referenced schema said of an object before, in this evaluation. A recursive schema with alternatives would
   * otherwise ask the same question over and over, each level more often than the one above.
   */
  answerOf(node: SchemaNode, value: unknown): boolean | undefined {
    return this.#answers?.get(node)?.get(value);
  }

  /** Remembers an answer, once enough references were followed to make it worth while. */
  remember(node: SchemaNode, value: unknown, answer: boolean): void {
    if (this.#stepsUnremembered-- > 0 || typeof value !== "object" || value === null) return;
    this.#answers ??= new Map();
    const answers = this.#answers.get(node) ?? new Map<unknown, boolean>();
    this.#answers.set(node, answers.set(value, answer));
  }

  /** Tells whether normalising the object by this node alone was seen to change nothing. */
  isUnchanged(node: SchemaNode, value: object): boolean {
    return this.#unchanged?.get(node)?.has(value) === true;
  }

  /** Remembers that it changed nothing: a value that is shared many times over is then looked into once. */
  rememberUnchanged(node: SchemaNode, value: object): void {
    if (this.#partsUnremembered-- > 0) return;
    this.#unchanged ??= new Map();
    const objects = this.#unchanged.get(node) ?? new WeakSet();
    this.#unchanged.set(node, objects.add(value));
  }

  /** Goes one level down into the value. */
  descend(): void {
    if (--this.budget.depth < 0) throw new LimitReached("depth");
  }

  ascend(): void {
    this.budget.depth++;
  }

  /** Puts the shortest pointers first, each said once, and keeps at most the number that is shown. */
  choose(issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
    const chosen = this.mayRepeat ? withoutRepeats(issues) : [...issues];
    chosen.sort(byLength);
    return chosen.length > MAX_ISSUES ? chosen.slice(0, MAX_ISSUES) : chosen;
  }

  /** Records what is wrong, if anyone wants to know; always false, so that a check can end with it. */
  fail(pointer: string, expected: string, found: unknown): false {
    const { issues } = this;
    if (issues === undefined) return false;
    this.step(2);
    if (issues.length >= MAX_GATHERED) issues.splice(0, issues.length, ...this.choose(issues));
    issues.push({ pointer: clipPointer(pointer), expected, found: describeFound(found, this) });
    return false;
  }
}

/** Cuts a pointer that a very long key would make unreadable. */
export function clipPointer(pointer: string): string {
  return shortText(pointer, MAX_POINTER);
}

function byLength(a: SchemaIssue, b: SchemaIssue): number {
  return a.pointer.length - b.pointer.length;
}

function withoutRepeats(issues: readonly SchemaIssue[]): SchemaIssue[] {
  const seen = new Set<string>();
  return issues.filter(({ pointer, expected }) => {
    const key = `${pointer}\n${expected}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** The bits of `TYPE_BITS` that a value has; 0 for what JSON does not know. */
export function typeBits(value: unknown): number {
  switch (typeof value) {
    case "string":
      return TYPE_BITS.string;
    case "number":
      if (Number.isInteger(value)) return TYPE_BITS.number | TYPE_BITS.integer;
      return Number.isFinite(value) ? TYPE_BITS.number : 0;
    case "boolean":
      return TYPE_BITS.boolean;
    case "object":
      if (value === null) return TYPE_BITS.null;
      return Array.isArray(value) ? TYPE_BITS.array : TYPE_BITS.object;
    case "undefined":
      return TYPE_BITS.undefined;
    case "bigint":
      return TYPE_BITS.bigint;
    default:
      return 0;
  }
}

const typeNames = new Map<number, string>();

/** Names the types of a set of bits, for people. */
export function describeTypes(bits: number): string {
  let text = typeNames.get(bits);
  if (text === undefined) {
    const names = Object.entries(TYPE_BITS).filter(([name, bit]) => name !== "void" && (bits & bit) !== 0);
    text = names.map(([name]) => name).join(" or ");
    typeNames.set(bits, text);
  }
  return text;
}

/** Says what a value is without repeating its text, which may be secret or foreign. */
export function describeFound(value: unknown, meter?: WorkMeter): string {
  switch (typeof value) {
    case "string":
      return `string of ${counted(countCodePoints(value, meter), "character")}`;
    case "number":
    case "boolean":
      return `${typeof value} ${value}`;
    case "object":
      return value === null ? "null" : describeObject(value);
    case "undefined":
      return NOTHING;
    default:
      return typeof value;
  }
}

/** A proxy may refuse even to be asked what it is. */
function describeObject(value: object): string {
  try {
    return Array.isArray(value) ? `array of ${counted(Number(value.length), "item")}` : "object";
  } catch {
    return "object";
  }
}
