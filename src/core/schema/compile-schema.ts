import { buildNodes } from "./build-nodes.ts";
import { evaluate } from "./evaluate.ts";
import { type Budget, type Evaluation, LimitReached } from "./evaluation.ts";
import { generatePredicates } from "./generate-predicates.ts";
import { interpretedPredicates, type Predicates, startEvaluation } from "./interpreted-predicates.ts";
import { type JsonSchema, LEGACY, MODERN } from "./json-schema.ts";
import { SCHEMA_LIMITS, type SchemaLimits } from "./limits.ts";
import { Normalization, type NormalizeMode, normalizeAt } from "./normalize.ts";
import { SchemaIndex } from "./schema-index.ts";
import type { NormalizationReport, SchemaIssue } from "./schema-issue.ts";
import { type SchemaNode, saysOnly } from "./schema-node.ts";
import { snapshotSchema } from "./snapshot-schema.ts";
import { reachable, vetNodes } from "./vet-nodes.ts";

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

/** References that generated code follows before the interpreter takes over, which is slower and remembers answers. */
const GENERATED_STEPS = 200_000;

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
  const root = buildNodes(index.add(json), index, limits);
  vetNodes(root, limits);
  return new Checker(json, root, limits, options.codegen ?? true);
}

class Checker implements CompiledSchema {
  readonly json: JsonSchema;
  readonly meaningful: boolean;
  readonly hasDefaults: boolean;
  readonly #root: SchemaNode;
  readonly #limits: SchemaLimits;
  readonly #budget: Budget;
  readonly #codegen: boolean;
  readonly #generatedSteps: number;
  /** Made on first use: most schemas of a large registry are never asked. */
  #predicates: Predicates | undefined;

  constructor(json: JsonSchema, root: SchemaNode, limits: SchemaLimits, codegen: boolean) {
    const nodes = [...reachable(root)];
    this.json = json;
    this.#root = root;
    this.#limits = limits;
    this.#budget = { steps: limits.steps, depth: limits.valueDepth };
    this.#codegen =
      codegen &&
      !nodes.some(({ dynamicRef }) => dynamicRef !== undefined && dynamicRef.settled === undefined);
    this.#generatedSteps = this.#codegen ? Math.min(limits.steps, GENERATED_STEPS) : limits.steps;
    this.meaningful = root.constant === undefined ? !saysOnly(root) : !root.constant;
    this.hasDefaults = nodes.some((node) => node.default !== undefined);
  }

  check(value: unknown): boolean {
    const predicates = this.#ready();
    try {
      return predicates.isValid(value, 0);
    } catch {
      return this.#codegen && this.#checkInterpreted(value);
    }
  }

  isClean(value: unknown): boolean {
    const predicates = this.#ready();
    try {
      return predicates.isClean(value, 0);
    } catch {
      return false;
    }
  }

  errors(value: unknown): readonly SchemaIssue[] {
    if (this.check(value)) return [];
    const run = this.#start(true);
    const { issues = [] } = run;
    try {
      evaluate(this.#root, value, run, "", undefined);
    } catch (thrown) {
      run.issues = issues;
      run.fail("", this.#describeThrown(thrown), value);
    }
    return run.choose(issues);
  }

  normalize(value: unknown): Normalized {
    if (this.isClean(value)) return { value, valid: true, issues: [] };
    const changed = this.#normalizeFully(value, SHAPE);
    if (changed !== undefined) return { ...changed, valid: true, issues: [] };
    const issues = this.errors(value);
    return { value, valid: issues.length === 0, issues };
  }

  fillDefaults(value: unknown): unknown {
    if (!this.hasDefaults) return value;
    const changed = this.#normalizeFully(value, DEFAULTS);
    return changed === undefined ? value : changed.value;
  }

  /** Normalises until nothing changes; undefined when nothing did, or when the outcome would not pass. */
  #normalizeFully(value: unknown, mode: NormalizeMode): Changed | undefined {
    // A default stands in for a property that is missing, not for a whole value that is.
    if (value === undefined) return undefined;
    const pass = new Normalization(this.#start(false), mode);
    let current: unknown = value;
    try {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const next = normalizeAt([this.#root], current, "", pass);
        if (Object.is(next, current)) {
          return Object.is(current, value) || !this.check(current)
            ? undefined
            : { value: current, report: pass.report() };
        }
        current = next;
      }
    } catch {
      // A value beyond the limits, or one that cannot be read, is left as it is; `errors` says why.
    }
    return undefined;
  }

  /** The interpreter remembers answers, so it may come to an end where generated code ran out of steps. */
  #checkInterpreted(value: unknown): boolean {
    try {
      return evaluate(this.#root, value, this.#start(false), "", undefined);
    } catch {
      return false;
    }
  }

  #ready(): Predicates {
    this.#predicates ??= this.#codegen
      ? generatePredicates(this.#root, this.#budget, this.#limits)
      : interpretedPredicates(this.#root, this.#budget);
    this.#budget.steps = this.#generatedSteps;
    this.#budget.depth = this.#limits.valueDepth;
    return this.#predicates;
  }

  #start(collect: boolean): Evaluation {
    this.#budget.steps = this.#limits.steps;
    this.#budget.depth = this.#limits.valueDepth;
    return startEvaluation(this.#root, this.#budget, collect);
  }

  #describeThrown(thrown: unknown): string {
    try {
      if (thrown instanceof LimitReached && thrown.message === "steps") {
        return `a value that can be checked by following at most ${this.#limits.steps} references`;
      }
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

interface Changed {
  readonly value: unknown;
  readonly report: NormalizationReport;
}
