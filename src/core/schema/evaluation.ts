import { countCodePoints } from "./json-value.ts";
import { MAX_ISSUES } from "./limits.ts";
import type { SchemaResource } from "./schema-index.ts";
import type { SchemaIssue } from "./schema-issue.ts";
import { TYPE_BITS } from "./schema-node.ts";

/** Issues gathered before the shortest are chosen; a bound on work, not on what is shown. */
const MAX_GATHERED = 500;

/** Thrown inside an evaluation that meets a limit; it never leaves the schema module. */
export class LimitReached extends Error {}

/** Which parts of one value some subschema has looked at, for `unevaluatedProperties` and `unevaluatedItems`. */
export class Evaluated {
  allProperties = false;
  readonly properties = new Set<string>();
  allItems = false;
  /** Items before this index were looked at. */
  items = 0;
  readonly singleItems = new Set<number>();

  merge(other: Evaluated): void {
    this.allProperties ||= other.allProperties;
    this.allItems ||= other.allItems;
    this.items = Math.max(this.items, other.items);
    for (const key of other.properties) this.properties.add(key);
    for (const index of other.singleItems) this.singleItems.add(index);
  }
}

/** How much further a check may go; shared by all that takes part in it. */
export interface Budget {
  /** References that may still be followed. */
  steps: number;
  /** Levels the value may still go down. */
  depth: number;
}

/** The state of checking one value: limits, dynamic scope, and the issues when they are wanted. */
export class Evaluation {
  issues: SchemaIssue[] | undefined;
  readonly scope: SchemaResource[] = [];
  readonly budget: Budget;

  constructor(budget: Budget, collect: boolean) {
    this.issues = collect ? [] : undefined;
    this.budget = budget;
  }

  /** Counts a reference followed: only these can make work grow faster than schema and value. */
  step(): void {
    if (--this.budget.steps < 0) throw new LimitReached("steps");
  }

  /** Goes one level down into the value. */
  descend(): void {
    if (--this.budget.depth < 0) throw new LimitReached("depth");
  }

  ascend(): void {
    this.budget.depth++;
  }

  /** Records what is wrong, if anyone wants to know; always false, so that a check can end with it. */
  fail(pointer: string, expected: string, found: unknown): false {
    if (this.issues !== undefined && this.issues.length < MAX_GATHERED) {
      this.issues.push({ pointer, expected, found: describeValue(found) });
    }
    return false;
  }
}

/** Puts the shortest pointers first, without repetition, and keeps at most the number that is shown. */
export function chooseIssues(issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
  const chosen: SchemaIssue[] = [];
  for (const issue of [...issues].sort((a, b) => a.pointer.length - b.pointer.length)) {
    if (chosen.some(({ pointer, expected }) => pointer === issue.pointer && expected === issue.expected))
      continue;
    if (chosen.push(issue) === MAX_ISSUES) break;
  }
  return chosen;
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
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return `string of ${countCodePoints(value)} characters`;
    case "number":
    case "boolean":
      return `${typeof value} ${value}`;
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? `array of ${value.length} items` : "object";
    case "undefined":
      return "nothing";
    default:
      return typeof value;
  }
}
