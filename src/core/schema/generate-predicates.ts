import { CodeWriter } from "./code-writer.ts";
import type { WorkMeter } from "./compare-values.ts";
import { type Budget, LimitReached } from "./evaluation.ts";
import { interpretedPredicates, type Predicates } from "./interpreted-predicates.ts";
import type { SchemaLimits } from "./limits.ts";
import { countCodePoints, isMultipleOf } from "./measure-values.ts";
import type { SchemaNode } from "./schema-node.ts";

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
