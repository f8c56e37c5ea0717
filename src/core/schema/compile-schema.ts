import { buildNodes } from "./build-nodes.ts";
import { evaluate } from "./evaluate.ts";
import { type Budget, describeValue, type Evaluation, LimitReached } from "./evaluation.ts";
import { generatePredicates } from "./generate-predicates.ts";
import { interpretedPredicates, type Predicates, startEvaluation } from "./interpreted-predicates.ts";
import { type JsonSchema, LEGACY, MODERN } from "./json-schema.ts";
import { SCHEMA_LIMITS, type SchemaLimits, STEPS_PER_PART } from "./limits.ts";
import { countParts } from "./measure-values.ts";
import { Normalization, type NormalizeMode, normalizeAt } from "./normalize.ts";
import { SchemaIndex } from "./schema-index.ts";
import type { NormalizationReport, SchemaIssue } from "./schema-issue.ts";
import { type SchemaNode, saysOnly } from "./schema-node.ts";
import { PLAIN_RESOURCE, SharedDefinitions } from "./shared-definitions.ts";
import { snapshotSchema } from "./snapshot-schema.ts";
import { vetNodes } from "./vet-nodes.ts";

/** How a schema is compiled. */
export interface SchemaOptions {
  /** Bounds to vet against; those left out keep their default. */
  readonly limits?: Partial<SchemaLimits>;
  /** Compile to code where the platform allows it; results are the same without. @default true */
  readonly codegen?: boolean;
  /** What a schema without `$schema` is read as. @default "2020-12" */
  readonly dialect?: "2020-12" | "draft-07";
  /** Further documents that `$ref` may name, by URI; nothing is ever fetched. */
  readonly documents?: Readonly<Record<string, JsonSchema>>;
}

/** What normalising a value gives. */
export interface Normalized {
  /** The normalised value where it passes, else the value as it was. */
  readonly value: unknown;
  readonly valid: boolean;
  readonly issues: readonly SchemaIssue[];
  /** Present when something was changed. */
  readonly report?: NormalizationReport;
}

/** A schema that was vetted and is ready to check values. */
export interface CompiledSchema {
  /** The schema as plain JSON, frozen. */
  readonly json: JsonSchema;
  /** False for a schema that says nothing, such as `{}` or `Type.Unknown()`. */
  readonly meaningful: boolean;
  /** True when some subschema declares a default. */
  readonly hasDefaults: boolean;
  /** Tells whether the value passes. */
  check(value: unknown): boolean;
  /** Lists what is wrong, shortest pointer first, at most 20; empty when the value passes. */
  errors(value: unknown): readonly SchemaIssue[];
  /** True only when the value passes and normalising would change nothing; false may still turn out fine. */
  isClean(value: unknown): boolean;
  /** Strips, fills declared defaults and converts without loss; never mutates, same object when nothing changes. */
  normalize(value: unknown): Normalized;
  /** Fills declared defaults only; same object when none is missing. */
  fillDefaults(value: unknown): unknown;
}

/** Steps of work that generated code does before the interpreter takes over, which is slower and remembers answers. */
const GENERATED_STEPS = 200_000;

/** Steps that code does in a second attempt where it hands much over to the interpreter, and is hardly faster. */
const HANDED_OVER_STEPS = 2_000_000;

/** Rounds of normalising before a value that keeps changing is given up on. */
const MAX_ROUNDS = 8;
const SHAPE: NormalizeMode = { shape: true };
const DEFAULTS: NormalizeMode = { shape: false };

/** Vets a JSON Schema and makes it ready to check and normalise values; throws `SchemaError` when it is refused. */
export function compileSchema(schema: unknown, options: SchemaOptions = {}): CompiledSchema {
  const limits = { ...SCHEMA_LIMITS, ...options.limits };
  const json = snapshotSchema(schema, limits);
  const dialect = options.dialect === "draft-07" ? LEGACY : MODERN;
  const index = new SchemaIndex(options.documents ?? {}, limits, dialect);
  const isUsual = dialect === MODERN && options.limits === undefined && options.documents === undefined;
  const shared = isUsual ? SharedDefinitions.of(schema, json) : undefined;
  shared?.addTo(index);
  const resource = shared === undefined ? undefined : PLAIN_RESOURCE;
  const { root, nodeOf } = buildNodes(index.add(json), index, { limits, resource });
  const costs = vetNodes(root, limits, (node) => shared?.costOf(node));
  shared?.learn(nodeOf, costs);
  const nodes = [...costs.keys()];
  const hasDefaults = nodes.some((node) => node.default !== undefined) || shared?.hasDefaults(nodes) === true;
  const hasOwnCode = nodes.every(
    ({ dynamicRef }) => dynamicRef === undefined || dynamicRef.settled !== undefined,
  );
  return new Checker(json, root, {
    limits,
    hasDefaults,
    codegen: (options.codegen ?? true) && hasOwnCode,
  });
}

interface CheckerOptions {
  readonly limits: SchemaLimits;
  readonly hasDefaults: boolean;
  readonly codegen: boolean;
}

class Checker implements CompiledSchema {
  readonly json: JsonSchema;
  readonly meaningful: boolean;
  readonly hasDefaults: boolean;
  readonly #root: SchemaNode;
  readonly #limits: SchemaLimits;
  readonly #budget: Budget;
  readonly #codegen: boolean;
  /** Steps that the predicates may count before the size of the value is looked at. */
  #firstSteps: number;
  /** Made on first use: most schemas of a large registry are never asked. */
  #predicates: Predicates | undefined;

  constructor(json: JsonSchema, root: SchemaNode, { limits, hasDefaults, codegen }: CheckerOptions) {
    this.json = json;
    this.#root = root;
    this.#limits = limits;
    this.#budget = { steps: limits.steps, depth: limits.valueDepth };
    this.#codegen = codegen;
    this.#firstSteps = limits.steps;
    this.meaningful = root.constant === undefined ? !saysOnly(root) : !root.constant;
    this.hasDefaults = hasDefaults;
  }

  check(value: unknown): boolean {
    const predicates = this.#ready(0);
    try {
      return predicates.isValid(value, 0);
    } catch (thrown) {
      return this.#checkFurther(value, thrown) === true;
    }
  }

  isClean(value: unknown): boolean {
    return this.#cleanVerdict(value) === true;
  }

  errors(value: unknown): readonly SchemaIssue[] {
    const verdict = this.#verdict(value);
    if (verdict === true) return [];
    if (verdict === "too much work") return [this.#tooMuchWork(value)];
    return this.#collect(value, 0) ?? this.#collect(value, this.#stepsForSize(value)) ?? [];
  }

  normalize(value: unknown): Normalized {
    const clean = this.#cleanVerdict(value);
    if (clean === true) return { value, valid: true, issues: [] };
    if (clean === "too much work" && this.#interpret(value, this.#stepsForSize(value)) === "too much work") {
      return { value, valid: false, issues: [this.#tooMuchWork(value)] };
    }
    const changed = this.#normalizeFully(value, SHAPE);
    if (typeof changed === "object") return { ...changed, valid: true, issues: [] };
    // What cannot be brought to its shape is refused, rather than passed on with what should have been stripped.
    const issues = this.errors(value);
    const isLeft = changed === "too much work" && issues.length === 0;
    return isLeft
      ? { value, valid: false, issues: [this.#tooMuchWork(value)] }
      : { value, valid: issues.length === 0, issues };
  }

  fillDefaults(value: unknown): unknown {
    if (!this.hasDefaults) return value;
    const changed = this.#normalizeFully(value, DEFAULTS);
    return typeof changed === "object" ? changed.value : value;
  }

  #verdict(value: unknown): Verdict {
    try {
      return this.#ready(0).isValid(value, 0);
    } catch (thrown) {
      return this.#checkFurther(value, thrown);
    }
  }

  /**
   * Goes on where the first check was stopped: with as many steps as the size of the value allows, then by the interpreter,
   * which remembers answers and so may come to an end where generated code does not.
   */
  #checkFurther(value: unknown, thrown: unknown): Verdict {
    const isStopped = isTooMuchWork(thrown);
    if (!isStopped && !this.#codegen) return false;
    const more = this.#stepsForSize(value);
    if (isStopped && this.#codegen) {
      try {
        const isOwn = this.#predicates?.handsOver !== true;
        return this.#ready(isOwn ? more : Math.min(more, HANDED_OVER_STEPS)).isValid(value, 0);
      } catch {
        // The interpreter has the last word.
      }
    }
    return this.#interpret(value, more);
  }

  #interpret(value: unknown, more: number): Verdict {
    try {
      return evaluate(this.#root, value, this.#start(false, more), "", undefined);
    } catch (thrown) {
      return isTooMuchWork(thrown) ? "too much work" : false;
    }
  }

  #cleanVerdict(value: unknown): Verdict {
    const predicates = this.#ready(0);
    try {
      return predicates.isClean(value, 0);
    } catch (thrown) {
      return isTooMuchWork(thrown) && this.#isCleanWithin(value, this.#stepsForSize(value));
    }
  }

  #isCleanWithin(value: unknown, more: number): Verdict {
    try {
      return this.#ready(more).isClean(value, 0);
    } catch (thrown) {
      return isTooMuchWork(thrown) ? "too much work" : false;
    }
  }

  /** What is wrong with a value; undefined when that takes more work than the first steps. */
  #collect(value: unknown, more: number): readonly SchemaIssue[] | undefined {
    const run = this.#start(true, more);
    const { issues = [] } = run;
    try {
      evaluate(this.#root, value, run, "", undefined);
    } catch (thrown) {
      if (isTooMuchWork(thrown)) {
        if (more === 0) return undefined;
        // The value does not pass, whatever the rest of it holds.
        return issues.length > 0 ? run.choose(issues) : [this.#tooMuchWork(value)];
      }
      run.issues = issues;
      issues.push({ pointer: "", expected: this.#describeThrown(thrown), found: describeValue(value) });
    }
    return run.choose(issues);
  }

  /** Normalises until nothing changes; undefined when nothing did, or when the outcome would not pass. */
  #normalizeFully(value: unknown, mode: NormalizeMode): Changed | "too much work" | undefined {
    // A default stands in for a property that is missing, not for a whole value that is.
    if (value === undefined) return undefined;
    try {
      return this.#normalizeWithin(value, mode, 0);
    } catch (thrown) {
      // A value beyond the limits, or one that cannot be read, is left as it is; `errors` says why.
      if (!isTooMuchWork(thrown)) return undefined;
    }
    try {
      return this.#normalizeWithin(value, mode, this.#stepsForSize(value));
    } catch (thrown) {
      return isTooMuchWork(thrown) ? "too much work" : undefined;
    }
  }

  #normalizeWithin(value: unknown, mode: NormalizeMode, more: number): Changed | undefined {
    const pass = new Normalization(this.#start(false, more), mode);
    let current: unknown = value;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const next = normalizeAt([this.#root], current, "", pass);
      if (Object.is(next, current)) {
        return Object.is(current, value) || !this.check(current)
          ? undefined
          : { value: current, report: pass.report() };
      }
      current = next;
    }
    return undefined;
  }

  #ready(more: number): Predicates {
    this.#predicates ??= this.#makePredicates();
    this.#budget.steps = this.#firstSteps + more;
    this.#budget.depth = this.#limits.valueDepth;
    return this.#predicates;
  }

  #makePredicates(): Predicates {
    if (!this.#codegen) return interpretedPredicates(this.#root, this.#budget);
    const predicates = generatePredicates(this.#root, this.#budget, this.#limits);
    // The interpreter counts the value as a whole too, and all that is in it.
    const counted = Math.min(this.#limits.steps, GENERATED_STEPS) - 1 - (predicates.uncounted ?? 0);
    if (counted < 0) return interpretedPredicates(this.#root, this.#budget);
    this.#firstSteps = counted;
    return predicates;
  }

  #start(collect: boolean, more: number): Evaluation {
    this.#budget.steps = this.#limits.steps + more;
    this.#budget.depth = this.#limits.valueDepth;
    return startEvaluation(this.#root, this.#budget, collect);
  }

  #stepsForSize(value: unknown): number {
    return STEPS_PER_PART * countParts(value, this.#limits.valueDepth);
  }

  #tooMuchWork(value: unknown): SchemaIssue {
    const expected = `a value that can be checked in ${this.#limits.steps} steps and ${STEPS_PER_PART} more for each of its parts`;
    return { pointer: "", expected, found: describeValue(value) };
  }

  #describeThrown(thrown: unknown): string {
    try {
      if (thrown instanceof LimitReached && thrown.message === "pattern") {
        return "texts short enough for the patterns they have to match";
      }
      if (thrown instanceof LimitReached) return `at most ${this.#limits.valueDepth} levels of nesting`;
      if (thrown instanceof RangeError) return "less nesting than there is room for on the stack";
    } catch {
      // What a getter throws may itself refuse to be looked at.
    }
    return "a value whose properties can be read";
  }
}

/** Whether a value passes, or why nobody can tell. */
type Verdict = boolean | "too much work";

function isTooMuchWork(thrown: unknown): boolean {
  try {
    return thrown instanceof LimitReached && thrown.message === "steps";
  } catch {
    // What a getter throws may itself refuse to be looked at.
    return false;
  }
}

interface Changed {
  readonly value: unknown;
  readonly report: NormalizationReport;
}
