import { evaluate } from "./evaluate.ts";
import { type Budget, Evaluation } from "./evaluation.ts";
import { Normalization, normalizeAt } from "./normalize.ts";
import type { SchemaNode } from "./schema-node.ts";

/** The two questions asked of every value, `depth` levels down from where the check began. */
export interface Predicates {
  isValid(value: unknown, depth: number): boolean;
  /** Valid, and nothing to strip, fill or convert. */
  isClean(value: unknown, depth: number): boolean;
  /** Steps of work that neither counts, because no check takes them more than once. @default 0 */
  readonly uncounted?: number;
  /** Whether code leaves part of the work to the interpreter. @default false */
  readonly handsOver?: boolean;
}

/** Begins an evaluation whose outermost resource is that of `root`. */
export function startEvaluation(root: SchemaNode, budget: Budget, collect: boolean): Evaluation {
  const run = new Evaluation(budget, collect);
  run.scope.push(root.resource);
  return run;
}

/** Answers by walking the nodes: needs no code generation, and knows every keyword. */
export function interpretedPredicates(root: SchemaNode, budget: Budget, at: SchemaNode = root): Predicates {
  const isValid = (value: unknown, depth: number): boolean => {
    budget.depth -= depth;
    const passed = evaluate(at, value, startEvaluation(root, budget, false), "", undefined);
    budget.depth += depth;
    return passed;
  };
  const isClean = (value: unknown, depth: number): boolean => {
    if (!isValid(value, depth)) return false;
    budget.depth -= depth;
    const pass = new Normalization(startEvaluation(root, budget, false), { shape: true });
    const isSame = value === undefined || Object.is(normalizeAt([at], value, "", pass), value);
    budget.depth += depth;
    return isSame;
  };
  return { isValid, isClean };
}
