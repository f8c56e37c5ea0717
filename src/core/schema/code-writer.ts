import { type CodeMode, hasOwnCode, isScalar, scalarValues } from "./code-support.ts";
import { numberTests, stringTests, typeTest } from "./code-tests.ts";
import { type ArrayRules, defaultOf, type ObjectRules, type SchemaNode } from "./schema-node.ts";

const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));
const MAX_INLINE_VALUES = 8;

/** Writes JavaScript that answers `isValid` and `isClean` for a schema. Every name in it comes from here or is quoted. */
export class CodeWriter {
  /** Values the code refers to by number. */
  readonly constants: unknown[] = [];
  /** Nodes the code hands over to the interpreter, by number. */
  readonly interpreted: SchemaNode[] = [];
  readonly #functions = new Map<string, string>();
  readonly #ids = new Map<SchemaNode, number>();
  readonly #maxDepth: number;
  #names = 0;

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  write(root: SchemaNode): string {
    const isValid = this.#functionFor(root, "valid");
    const isClean = this.#functionFor(root, "clean");
    const functions = [...this.#functions.values()].join("\n");
    const names =
      "constants:k,interpret:s,budget:b,prototype:O,getPrototypeOf:P,hasOwn:H,countCodePoints:C,isMultipleOf:M,limit:L";
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
    let index = this.interpreted.indexOf(node);
    if (index === -1) index = this.interpreted.push(node) - 1;
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
    const values = scalarValues(node);
    if (node.types !== 0) code.push(`if (!(${typeTest(node.types, x)})) return false;`);
    if (values !== undefined) code.push(`if (!(${this.#valueTest(values, x)})) return false;`);
    else if (node.anyOf !== undefined) code.push(this.#anyOf(node.anyOf, mode, x, down));
    else if (node.oneOf !== undefined) code.push(this.#oneOf(node.oneOf, mode, x, down));
    if (node.string !== undefined) {
      code.push(
        `if (typeof ${x} === "string") { ${stringTests(node.string, x, (value) => this.#constant(value))} }`,
      );
    }
    if (node.number !== undefined)
      code.push(`if (typeof ${x} === "number") { ${numberTests(node.number, x)} }`);
    if (node.array !== undefined)
      code.push(`if (Array.isArray(${x})) {\n${this.#array(node.array, mode, x, down)}\n}`);
    if (node.object !== undefined) {
      const body = this.#object(node, node.object, mode, x, down);
      code.push(`if (typeof ${x} === "object" && ${x} !== null && !Array.isArray(${x})) {\n${body}\n}`);
    }
    return code.join("\n");
  }

  #reference(target: SchemaNode, mode: CodeMode, x: string, down: number): string {
    return `if (--b.steps < 0) L();\nif (!${this.#functionFor(target, mode)}(${x}, ${depthAt(down)})) return false;`;
  }

  #anyOf(branches: readonly SchemaNode[], mode: CodeMode, x: string, down: number): string {
    const tests = branches.map((branch) => `${this.#functionFor(branch, mode)}(${x}, ${depthAt(down)})`);
    return `if (!(${tests.join(" || ") || "false"})) return false;`;
  }

  #oneOf(branches: readonly SchemaNode[], mode: CodeMode, x: string, down: number): string {
    const count = this.#name();
    const lines = branches.map(
      (branch) =>
        `if (${this.#functionFor(branch, "valid")}(${x}, ${depthAt(down)}) && ++${count} > 1) return false;`,
    );
    const one = `let ${count} = 0;\n${lines.join("\n")}\nif (${count} !== 1) return false;`;
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
      code.push(`for (let ${i} = 0; ${i} < ${x}.length; ${i}++) { const ${item} = ${x}[${i}]; ${test} }`);
    }
    return code.join("\n");
  }

  /** An object of a class of its own goes to the interpreter, so that here own and inherited need no telling apart. */
  #object(node: SchemaNode, rules: ObjectRules, mode: CodeMode, x: string, down: number): string {
    const proto = this.#name();
    const handOver = this.#handOver(node, mode, x, depthAt(down));
    const count = this.#name();
    const code = [
      `const ${proto} = P(${x}); if (${proto} !== O && ${proto} !== null) return ${handOver};`,
      this.#depthTest(down),
    ];
    const isClosed =
      rules.additional?.constant === false ||
      (mode === "clean" && rules.named && rules.additional === undefined);
    let optional = 0;
    for (const key of new Set([...rules.properties.keys(), ...rules.required])) {
      const isRequired = rules.required.includes(key);
      if (!isRequired && rules.properties.has(key)) optional++;
      code.push(this.#property(rules, key, isRequired, mode, x, down, isClosed ? count : undefined));
    }
    const certain = [...rules.properties.keys()].length - optional;
    if (isClosed) {
      code.unshift(`let ${count} = ${certain};`);
      const [keys, key] = [this.#name(), this.#name()];
      // A key too many may still be one whose value is undefined, which counts as absent.
      const otherwise = mode === "valid" ? `return ${handOver};` : "return false;";
      code.push(
        `let ${keys} = 0; for (const ${key} in ${x}) ${keys}++; if (${keys} !== ${count}) ${otherwise}`,
      );
    } else if (rules.additional !== undefined)
      code.push(this.#additional(rules, rules.additional, mode, x, down));
    return code.join("\n");
  }

  #property(
    rules: ObjectRules,
    key: string,
    isRequired: boolean,
    mode: CodeMode,
    x: string,
    down: number,
    count: string | undefined,
  ): string {
    const child = rules.properties.get(key);
    const part = this.#name();
    const quoted = JSON.stringify(key);
    const read = INHERITED.has(key) ? `H(${x}, ${quoted}) ? ${x}[${quoted}] : undefined` : `${x}[${quoted}]`;
    const test = child === undefined ? "" : this.#statements(child, mode, part, down + 1);
    if (isRequired) return `const ${part} = ${read}; if (${part} === undefined) return false;\n${test}`;
    const absent =
      mode === "clean" && child !== undefined && defaultOf(child) !== undefined ? " else return false;" : "";
    const counted = count === undefined ? "" : `${count}++; `;
    return `const ${part} = ${read}; if (${part} !== undefined) { ${counted}${test} }${absent}`;
  }

  #additional(rules: ObjectRules, child: SchemaNode, mode: CodeMode, x: string, down: number): string {
    const [key, part] = [this.#name(), this.#name()];
    const test = this.#statements(child, mode, part, down + 1);
    if (test === "") return "";
    const skip =
      rules.properties.size === 0
        ? ""
        : `if (${this.#constant(new Set(rules.properties.keys()))}.has(${key})) continue; `;
    return `for (const ${key} in ${x}) { ${skip}const ${part} = ${x}[${key}]; if (${part} !== undefined) { ${test} } }`;
  }

  #valueTest(values: readonly unknown[], x: string): string {
    if (values.length > MAX_INLINE_VALUES) return `${this.#constant(new Set(values))}.has(${x})`;
    return values.map((value) => `${x} === ${JSON.stringify(value)}`).join(" || ") || "false";
  }

  #depthTest(down: number): string {
    return `if (${depthAt(down)} >= ${this.#maxDepth}) L();`;
  }

  #constant(value: unknown): string {
    return `k[${this.constants.push(value) - 1}]`;
  }

  #name(): string {
    return `x${this.#names++}`;
  }
}

function depthAt(down: number): string {
  return down === 0 ? "d" : `d + ${down}`;
}
