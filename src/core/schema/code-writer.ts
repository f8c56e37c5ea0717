import { countCodePoints, isMultipleOf, type WorkMeter } from "./compare-values.ts";
import { interpretedPredicates, KEYS_PER_STEP, type Predicates, passesAll } from "./evaluate.ts";
import { type Budget, LimitReached } from "./evaluation.ts";
import type { SchemaLimits } from "./limits.ts";
import {
  type ArrayRules,
  defaultOf,
  type NumberRules,
  type ObjectRules,
  type SchemaNode,
  type StringRules,
  saysOnly,
  TYPE_BITS,
} from "./schema-node.ts";
import { neighbours, reachable } from "./vet-nodes.ts";

const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));
const MAX_INLINE_VALUES = 8;

/** Writes JavaScript that answers `isValid` and `isClean` for a schema. Every name in it comes from here or is quoted. */
class CodeWriter {
  /** Values the code refers to by number. */
  readonly constants: unknown[] = [];
  /** Nodes the code hands over to the interpreter, by number. */
  readonly interpreted: SchemaNode[] = [];
  /** Steps that the code does not count, because each check takes them at most once. */
  uncounted = 0;
  #once: ReadonlySet<SchemaNode> = new Set();
  readonly #handed = new Map<SchemaNode, number>();
  readonly #functions = new Map<string, string>();
  readonly #ids = new Map<SchemaNode, number>();
  readonly #maxDepth: number;
  #names = 0;

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  write(root: SchemaNode): string {
    this.#once = appliedOnce(root);
    for (const { object } of this.#once) this.uncounted += object === undefined ? 0 : stepsOf(object, true);
    const isValid = this.#functionFor(root, "valid");
    const isClean = this.#functionFor(root, "clean");
    const functions = [...this.#functions.values()].join("\n");
    const names =
      "constants:k,interpret:s,budget:b,prototype:O,getPrototypeOf:P,hasOwn:H,countCodePoints:C,isMultipleOf:M,limit:L,tooDeep:D";
    return `"use strict";\nconst {${names}} = r;\n${functions}\nreturn { isValid: ${isValid}, isClean: ${isClean} };`;
  }

  /** Returns the name of the function for a node, which takes the value and its depth. */
  #functionFor(node: SchemaNode, mode: CodeMode): string {
    const name = `${mode}${this.#id(node)}`;
    if (!this.#functions.has(name)) {
      this.#functions.set(name, "");
      const body = hasOwnCode(node, mode)
        ? this.#ownCode(node, mode, "v", 0)
        : `return ${this.#handOver(node, mode, "v", "d")};`;
      this.#functions.set(name, `function ${name}(v, d) {\n${body}\nreturn true;\n}`);
    }
    return name;
  }

  #id(node: SchemaNode): number {
    const known = this.#ids.get(node) ?? this.#ids.size;
    this.#ids.set(node, known);
    return known;
  }

  #handOver(node: SchemaNode, mode: CodeMode, x: string, depth: string): string {
    const index = this.#handed.get(node) ?? this.interpreted.push(node) - 1;
    this.#handed.set(node, index);
    return `s[${index}].${mode === "valid" ? "isValid" : "isClean"}(${x}, ${depth})`;
  }

  /** Statements that return false unless the variable `x`, `down` levels below the function's value, passes. */
  #statements(node: SchemaNode, mode: CodeMode, x: string, down: number): string {
    if (isScalar(node)) return this.#ownCode(node, mode, x, down);
    return `if (!${this.#functionFor(node, mode)}(${x}, ${depthAt(down)})) return false;`;
  }

  #ownCode(node: SchemaNode, mode: CodeMode, x: string, down: number): string {
    if (node.constant !== undefined) return node.constant ? "" : "return false;";
    if (node.ref !== undefined) return this.#reference(node.ref, mode, x, down);
    const code: string[] = [];
    if (node.types !== 0) code.push(`if (!(${typeTest(node.types, x)})) return false;`);
    if (node.values !== undefined) code.push(`if (!(${this.#valueTest(node.values, x)})) return false;`);
    if (node.anyOf !== undefined) code.push(this.#anyOf(node.anyOf, mode, x, down));
    if (node.oneOf !== undefined) code.push(this.#oneOf(node.oneOf, mode, x, down));
    for (const [bit, rules] of this.#rules(node, mode, x, down)) {
      code.push(node.types === bit ? rules : `if (${typeTest(bit, x)}) {\n${rules}\n}`);
    }
    return code.join("\n");
  }

  /** What a node says of values of one type; where it allows that type alone, no test needs to stand before it. */
  *#rules(
    node: SchemaNode,
    mode: CodeMode,
    x: string,
    down: number,
  ): Generator<[bit: number, rules: string]> {
    const { string, number, array, object, types } = node;
    if (string !== undefined)
      yield [TYPE_BITS.string, stringTests(string, x, (value) => this.#constant(value))];
    if (number !== undefined) {
      const bit = types === TYPE_BITS.integer ? TYPE_BITS.integer : TYPE_BITS.number;
      yield [bit, numberTests(number, x)];
    }
    if (array !== undefined) yield [TYPE_BITS.array, this.#array(array, mode, x, down)];
    if (object !== undefined) yield [TYPE_BITS.object, this.#object(node, object, mode, x, down)];
  }

  #reference(target: SchemaNode, mode: CodeMode, x: string, down: number): string {
    return `${count("1")}\nif (!${this.#functionFor(target, mode)}(${x}, ${depthAt(down)})) return false;`;
  }

  #anyOf(branches: readonly SchemaNode[], mode: CodeMode, x: string, down: number): string {
    const tests = branches.map((branch) => `${this.#functionFor(branch, mode)}(${x}, ${depthAt(down)})`);
    return `${count(String(branches.length))}\nif (!(${tests.join(" || ") || "false"})) return false;`;
  }

  #oneOf(branches: readonly SchemaNode[], mode: CodeMode, x: string, down: number): string {
    const found = this.#name();
    const lines = branches.map(
      (branch) =>
        `if (${this.#functionFor(branch, "valid")}(${x}, ${depthAt(down)}) && ++${found} > 1) return false;`,
    );
    const one = `${count(String(branches.length))}\nlet ${found} = 0;\n${lines.join("\n")}\nif (${found} !== 1) return false;`;
    return mode === "valid" ? one : `${one}\n${this.#anyOf(branches, mode, x, down)}`;
  }

  #array(rules: ArrayRules, mode: CodeMode, x: string, down: number): string {
    const code = [this.#depthTest(down)];
    if (rules.minItems > 0) code.push(`if (${x}.length < ${rules.minItems}) return false;`);
    if (rules.maxItems !== Number.POSITIVE_INFINITY)
      code.push(`if (${x}.length > ${rules.maxItems}) return false;`);
    if (rules.items !== undefined) {
      const [i, item] = [this.#name(), this.#name()];
      const test = this.#statements(rules.items, mode, item, down + 1);
      code.push(count(`${x}.length`));
      code.push(`for (let ${i} = 0; ${i} < ${x}.length; ${i}++) { const ${item} = ${x}[${i}]; ${test} }`);
    }
    return code.join("\n");
  }

  #object(node: SchemaNode, rules: ObjectRules, mode: CodeMode, x: string, down: number): string {
    const handOver = this.#handOver(node, mode, x, depthAt(down));
    const isClosed =
      rules.additional?.constant === false || (mode === "clean" && rules.named && !rules.additional);
    const present = isClosed ? this.#name() : undefined;
    const [first = "", ...others] = [...new Set([...rules.keys, ...rules.required])].map((key) =>
      this.#property(rules, key, mode, x, down, present),
    );
    const [read = "", test = ""] = first;
    const code = [read, this.#plainTest(x, handOver), this.#depthTest(down)];
    if (rules.keys.length > 0 && !this.#once.has(node)) code.push(count(String(stepsOf(rules, isClosed))));
    if (present !== undefined)
      code.push(`let ${present} = ${rules.keys.filter((key) => isRequired(rules, key)).length};`);
    code.push(test, ...others.flat());
    if (present !== undefined) code.push(this.#countTest(mode, x, present, handOver));
    else if (rules.additional !== undefined) {
      code.push(this.#additional(rules, rules.additional, mode, x, down));
    }
    return code.join("\n");
  }

  /**
   * Sends objects that may inherit properties to the interpreter, so that here own and inherited need no telling
   * apart. It comes after the first read of a property, where engines know the prototype for nothing; before it,
   * it costs twice as much as all the rest.
   */
  #plainTest(x: string, handOver: string): string {
    const proto = this.#name();
    return `const ${proto} = P(${x}); if (${proto} !== O && ${proto} !== null) return ${handOver};`;
  }

  /** A key too many may be one whose value is undefined, which counts as absent: the interpreter knows. */
  #countTest(mode: CodeMode, x: string, present: string, handOver: string): string {
    const [keys, key] = [this.#name(), this.#name()];
    const otherwise = mode === "valid" ? `return ${handOver};` : `{ ${count(keys)} return false; }`;
    return `let ${keys} = 0; for (const ${key} in ${x}) ${keys}++; if (${keys} !== ${present}) ${otherwise}`;
  }

  #property(
    rules: ObjectRules,
    key: string,
    mode: CodeMode,
    x: string,
    down: number,
    present: string | undefined,
  ): [read: string, test: string] {
    const child = rules.properties.get(key);
    const part = this.#name();
    const quoted = JSON.stringify(key);
    const value = INHERITED.has(key) ? `H(${x}, ${quoted}) ? ${x}[${quoted}] : undefined` : `${x}[${quoted}]`;
    const read = `const ${part} = ${value};`;
    const test = child === undefined ? "" : this.#statements(child, mode, part, down + 1);
    if (isRequired(rules, key)) {
      const isTyped = child !== undefined && isScalar(child) && child.types !== 0;
      return [read, isTyped ? test : `if (${part} === undefined) return false; ${test}`];
    }
    const counted = present === undefined ? "" : `${present}++; `;
    const hasDefault = mode === "clean" && child !== undefined && defaultOf(child) !== undefined;
    return [
      read,
      `if (${part} !== undefined) { ${counted}${test} }${hasDefault ? " else return false;" : ""}`,
    ];
  }

  #additional(rules: ObjectRules, child: SchemaNode, mode: CodeMode, x: string, down: number): string {
    const [key, part] = [this.#name(), this.#name()];
    const test = this.#statements(child, mode, part, down + 1);
    if (passesAll(child)) return "";
    const skip =
      rules.properties.size === 0
        ? ""
        : `if (${this.#constant(new Set(rules.properties.keys()))}.has(${key})) continue; `;
    return `for (const ${key} in ${x}) { ${count("2")} ${skip}const ${part} = ${x}[${key}]; if (${part} !== undefined) { ${test} } }`;
  }

  #valueTest(values: readonly unknown[], x: string): string {
    if (values.length > MAX_INLINE_VALUES) return `${this.#constant(new Set(values))}.has(${x})`;
    return values.map((value) => `${x} === ${JSON.stringify(value)}`).join(" || ") || "false";
  }

  #depthTest(down: number): string {
    return `if (${depthAt(down)} >= ${this.#maxDepth}) D();`;
  }

  #constant(value: unknown): string {
    return `k[${this.constants.push(value) - 1}]`;
  }

  #name(): string {
    return `x${this.#names++}`;
  }
}

/** The nodes that a check applies to one value each: the root, its properties, theirs, as long as nothing else leads there. */
function appliedOnce(root: SchemaNode): ReadonlySet<SchemaNode> {
  const ways = new Map<SchemaNode, number>();
  for (const node of reachable(root)) {
    for (const child of neighbours(node)) ways.set(child, (ways.get(child) ?? 0) + 1);
  }
  const once = new Set(ways.has(root) ? [] : [root]);
  for (const { object } of once) {
    for (const child of object?.children ?? []) if (ways.get(child) === 1) once.add(child);
  }
  return once;
}

/** A statement that counts steps of work, as many as the expression says and never fewer than the interpreter does. */
function count(steps: string): string {
  return `if ((b.steps -= ${steps}) < 0) L();`;
}

/** What the interpreter counts for an object at most: each property that is named, and each again by its name where others are looked for. */
function stepsOf({ keys }: ObjectRules, isClosed: boolean): number {
  return Math.floor(keys.length / KEYS_PER_STEP) + (isClosed ? 2 : 1) * keys.length;
}

function depthAt(down: number): string {
  return down === 0 ? "d" : `d + ${down}`;
}

function isRequired(rules: ObjectRules, key: string): boolean {
  return rules.required.includes(key);
}

/** Which of the two questions a piece of code answers. */
export type CodeMode = "valid" | "clean";

/** Larger objects and unions make functions that engines do not optimise; the interpreter is as good for them. */
const MAX_PROPERTIES = 200;
const MAX_BRANCHES = 200;
const CODE_ASPECTS = ["anyOf", "array", "number", "object", "oneOf", "string", "types", "values"] as const;
const BEYOND_JSON = TYPE_BITS.undefined | TYPE_BITS.bigint;

/** Tells whether generated code can cover all that a node says by itself. */
function hasOwnCode(node: SchemaNode, mode: CodeMode): boolean {
  if (node.constant !== undefined) return true;
  if (node.ref !== undefined) return saysOnly(node, "ref");
  if (!saysOnly(node, ...CODE_ASPECTS) || (node.types & BEYOND_JSON) !== 0) return false;
  if (node.values !== undefined && !node.values.every(isJsonScalar)) return false;
  if ((node.anyOf ?? node.oneOf ?? []).length > MAX_BRANCHES) return false;
  if (node.anyOf !== undefined) return saysOnly(node, "anyOf", "types") && isUnionCode(node.anyOf, mode);
  if (node.oneOf !== undefined) return saysOnly(node, "oneOf", "types");
  const { object, array } = node;
  if (object !== undefined && !isObjectCode(object)) return false;
  return array === undefined || (array.prefix.length === 0 && array.contains === undefined && !array.unique);
}

/** Tells whether a node's code is a few comparisons, better written in place than called. */
function isScalar(node: SchemaNode): boolean {
  if (node.constant !== undefined) return true;
  if (!hasOwnCode(node, "clean") || node.ref !== undefined) return false;
  return saysOnly(node, "types", "values", "number", "string");
}

function isJsonScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

function isObjectCode(rules: ObjectRules): boolean {
  return (
    rules.properties.size <= MAX_PROPERTIES &&
    rules.required.length <= MAX_PROPERTIES &&
    rules.patterns.length === 0 &&
    rules.names === undefined &&
    rules.minProperties === 0 &&
    rules.maxProperties === Number.POSITIVE_INFINITY &&
    rules.dependentRequired.length === 0 &&
    rules.dependentSchemas.length === 0
  );
}

/**
 * In a union a clean branch makes the value clean, unless another branch that fits too would fill a default, or strip
 * an object about whose properties the clean one says nothing.
 */
function isUnionCode(branches: readonly SchemaNode[], mode: CodeMode): boolean {
  if (mode === "valid") return true;
  const nodes = new Set(branches.flatMap((branch) => [...reachable(branch)]));
  return [...nodes].every((node) => node.default === undefined && isDecided(node));
}

/** Tells whether a node that takes objects says which properties they may have. */
function isDecided(node: SchemaNode): boolean {
  if (node.constant !== undefined) return !node.constant;
  if (node.types !== 0 && (node.types & TYPE_BITS.object) === 0) return true;
  const { object } = node;
  return (
    node.isCompound || node.values !== undefined || object?.named === true || object?.additional !== undefined
  );
}

/** An expression that is true when the variable `x` has one of the types. */
function typeTest(types: number, x: string): string {
  const tests: string[] = [];
  const has = (bit: number) => (types & bit) !== 0;
  if (has(TYPE_BITS.string)) tests.push(`typeof ${x} === "string"`);
  if (has(TYPE_BITS.number)) tests.push(`Number.isFinite(${x})`);
  else if (has(TYPE_BITS.integer)) tests.push(`Number.isInteger(${x})`);
  if (has(TYPE_BITS.boolean)) tests.push(`typeof ${x} === "boolean"`);
  if (has(TYPE_BITS.null)) tests.push(`${x} === null`);
  if (has(TYPE_BITS.array)) tests.push(`Array.isArray(${x})`);
  if (has(TYPE_BITS.object))
    tests.push(`(typeof ${x} === "object" && ${x} !== null && !Array.isArray(${x}))`);
  return tests.join(" || ");
}

/** Statements that return false when the number `x` is out of bounds. */
function numberTests(rules: NumberRules, x: string): string {
  const tests: string[] = [];
  if (rules.minimum !== undefined) tests.push(`${x} < ${rules.minimum}`);
  if (rules.maximum !== undefined) tests.push(`${x} > ${rules.maximum}`);
  if (rules.exclusiveMinimum !== undefined) tests.push(`${x} <= ${rules.exclusiveMinimum}`);
  if (rules.exclusiveMaximum !== undefined) tests.push(`${x} >= ${rules.exclusiveMaximum}`);
  if (rules.multipleOf !== undefined) tests.push(`!M(${x}, ${rules.multipleOf})`);
  return `if (${tests.join(" || ")}) return false;`;
}

/** Statements that return false when the string `x` is out of bounds; code points are counted only when in doubt. */
function stringTests(rules: StringRules, x: string, constant: (value: unknown) => string): string {
  const { minLength, maxLength, pattern } = rules;
  const tests: string[] = [];
  if (minLength === 1) tests.push(`${x}.length < 1`);
  else if (minLength > 1) tests.push(`(${x}.length < ${2 * minLength} && C(${x}) < ${minLength})`);
  if (maxLength !== Number.POSITIVE_INFINITY)
    tests.push(`(${x}.length > ${maxLength} && C(${x}) > ${maxLength})`);
  const lengths = tests.length === 0 ? "" : `if (${tests.join(" || ")}) return false;`;
  if (pattern === undefined) return lengths;
  const matcher = constant(pattern);
  const count = pattern.isLight ? "" : `if ((b.steps -= ${matcher}.cost(${x})) < 0) L();`;
  return `${lengths}${count}if (!${matcher}.test(${x})) return false;`;
}

/** What generated code may use, under the names it uses. */
export interface CodeRuntime {
  readonly constants: readonly unknown[];
  readonly interpret: readonly Predicates[];
  readonly budget: Budget;
  readonly prototype: object;
  getPrototypeOf(value: object): unknown;
  hasOwn(value: object, key: string): boolean;
  countCodePoints(text: string): number;
  isMultipleOf(value: number, step: number): boolean;
  /** Ends a check that takes too much work. */
  limit(): never;
  /** Ends the check of a value that is nested too deeply. */
  tooDeep(): never;
}

/**
 * Answers by code made for this schema. What has no code of its own is handed to the interpreter node by node, so
 * both ways give the same answers; where the platform forbids code generation, the interpreter does it all.
 */
export function generatePredicates(root: SchemaNode, budget: Budget, limits: SchemaLimits): Predicates {
  const writer = new CodeWriter(limits.valueDepth);
  const source = writer.write(root);
  const limit = () => {
    throw new LimitReached("steps");
  };
  const meter: WorkMeter = {
    step: (cost = 1) => {
      budget.steps -= cost;
      if (budget.steps < 0) limit();
    },
  };
  const runtime: CodeRuntime = {
    constants: writer.constants,
    interpret: writer.interpreted.map((node) => interpretedPredicates(root, budget, node)),
    budget,
    prototype: Object.prototype,
    getPrototypeOf: Object.getPrototypeOf,
    hasOwn: Object.hasOwn,
    countCodePoints: (text) => countCodePoints(text, meter),
    isMultipleOf: (value, step) => isMultipleOf(value, step, meter),
    limit,
    tooDeep: () => {
      throw new LimitReached("depth");
    },
  };
  try {
    const { isValid, isClean } = new Function("r", source)(runtime) as Predicates;
    const handsOver = writer.interpreted.length > 0;
    return { isValid, isClean, uncounted: writer.uncounted, handsOver };
  } catch {
    return interpretedPredicates(root, budget);
  }
}
