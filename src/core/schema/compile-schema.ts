import { buildNodes } from "./build-nodes.ts";
import { generatePredicates } from "./code-writer.ts";
import { countParts } from "./compare-values.ts";
import { evaluate, interpretedPredicates, type Predicates, startEvaluation } from "./evaluate.ts";
import { type Budget, describeFound, type Evaluation, LimitReached } from "./evaluation.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, LEGACY, MODERN } from "./json-schema.ts";
import { SCHEMA_LIMITS, type SchemaLimits, STEPS_PER_PART } from "./limits.ts";
import { Normalization, type NormalizeMode, normalizeAt } from "./normalize.ts";
import {
  isTodaysDialect,
  type KnownDefinition,
  learnReferences,
  surveyPlainSchema,
  withSameReferences,
} from "./plain-schema.ts";
import { SchemaIndex, type SchemaResource } from "./schema-index.ts";
import type { NormalizationReport, SchemaIssue } from "./schema-issue.ts";
import { type SchemaNode, saysOnly } from "./schema-node.ts";
import { snapshotSchema } from "./snapshot-schema.ts";
import { type NodeCost, vetNodes } from "./vet-nodes.ts";

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
      issues.push({ pointer: "", expected: this.#describeThrown(thrown), found: describeFound(value) });
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
    return { pointer: "", expected, found: describeFound(value) };
  }

  #describeThrown(thrown: unknown): string {
    try {
      if (thrown instanceof LimitReached && thrown.limit === "pattern") {
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
    return thrown instanceof LimitReached && thrown.limit === "steps";
  } catch {
    // What a getter throws may itself refuse to be looked at.
    return false;
  }
}

interface Changed {
  readonly value: unknown;
  readonly report: NormalizationReport;
}

/** A definition with its nodes, for every schema that has the same frozen object, and the same behind all it refers to. */
interface SharedDefinition extends KnownDefinition<SharedDefinition> {
  readonly node: SchemaNode;
  readonly cost: NodeCost;
}

/** The first meaning of each definition; a schema in which it means something else gets nodes of its own. */
const known = new WeakMap<JsonSchemaObject, SharedDefinition>();

/** What the nodes of every schema with shared definitions belong to: there are no names in it but those of the definitions. */
const PLAIN_RESOURCE: SchemaResource = Object.freeze({
  uri: "waybill:///",
  root: {},
  dialect: MODERN,
  anchors: new Map(),
  dynamicAnchors: new Map(),
  dynamicNodes: new Map(),
});

/** The definitions that one schema shares with others, so that each of them is indexed, built and vetted once for all. */
class SharedDefinitions {
  /** By name; those that were frozen before this schema was compiled, and so may stand in others. */
  readonly #frozen: ReadonlyMap<string, JsonSchemaObject>;
  readonly #inUse: ReadonlyMap<string, SharedDefinition>;
  readonly #byNode = new Map<SchemaNode, SharedDefinition>();

  private constructor(frozen: ReadonlyMap<string, JsonSchemaObject>) {
    this.#frozen = frozen;
    this.#inUse = findUsable(frozen);
    for (const shared of this.#inUse.values()) this.#byNode.set(shared.node, shared);
  }

  /** Finds what can be shared of a schema and its frozen copy; nothing where that has names of its own. */
  static of(schema: unknown, copy: JsonSchema): SharedDefinitions | undefined {
    if (!isObject(schema) || !isObject(copy) || !isObject(copy["$defs"])) return undefined;
    const given = schema["$defs"];
    const { $defs, ...rest } = copy;
    const frozen = new Map<string, JsonSchemaObject>();
    for (const name of Object.keys($defs)) {
      const definition = $defs[name];
      // What was frozen before is not copied.
      if (isObject(definition) && isObject(given) && given[name] === definition) frozen.set(name, definition);
    }
    if (frozen.size === 0 || !isTodaysDialect(rest["$schema"])) return undefined;
    return surveyPlainSchema(rest) === undefined ? undefined : new SharedDefinitions(frozen);
  }

  /** Counts those in use into the index of the schema, which needs not look into them then. */
  addTo(index: SchemaIndex): void {
    for (const [name, shared] of this.#inUse) {
      index.addKnown(this.#frozen.get(name) as JsonSchemaObject, shared);
    }
  }

  /** What vetting found out about a definition whose root this is. */
  costOf(node: SchemaNode): NodeCost | undefined {
    return this.#byNode.get(node)?.cost;
  }

  /** Tells whether a definition that is reached from these nodes declares a default. */
  hasDefaults(nodes: Iterable<SchemaNode>): boolean {
    const reached = new Set<SharedDefinition>();
    for (const node of nodes) {
      const shared = this.#byNode.get(node);
      if (shared !== undefined) reached.add(shared);
    }
    for (const { plain, refs } of reached) {
      if (plain.hasDefaults) return true;
      for (const next of refs.values()) reached.add(next);
    }
    return false;
  }

  /** Keeps what was built and vetted for other schemas. */
  learn(
    nodeOf: (definition: JsonSchemaObject) => SchemaNode | undefined,
    costs: ReadonlyMap<SchemaNode, NodeCost>,
  ): void {
    const made = new Map<string, SharedDefinition & { readonly refs: Map<string, SharedDefinition> }>();
    for (const [name, definition] of this.#frozen) {
      const node = known.has(definition) ? undefined : nodeOf(definition);
      const cost = node === undefined ? undefined : costs.get(node);
      const plain = node === undefined ? undefined : surveyPlainSchema(definition);
      if (node === undefined || cost === undefined || plain === undefined || plain.refersToRoot) continue;
      made.set(name, { node, cost, plain, refs: new Map() });
    }
    learnReferences(made, this.#inUse, (name, shared) => {
      known.set(this.#frozen.get(name) as JsonSchemaObject, shared);
    });
  }
}

function findUsable(frozen: ReadonlyMap<string, JsonSchemaObject>): ReadonlyMap<string, SharedDefinition> {
  const found = new Map<string, SharedDefinition>();
  for (const [name, definition] of frozen) {
    const shared = known.get(definition);
    if (shared !== undefined) found.set(name, shared);
  }
  return withSameReferences(found);
}
