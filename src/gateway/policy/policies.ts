import type { Hooks } from "../../core/execution/hooks.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { GatewayLimits } from "../config/gateway-config.ts";
import { isAdmitted, withPolicy } from "./admit-operation.ts";
import { PolicyBook, type PolicyRules } from "./policy-book.ts";
import { PolicyHooks, type SourceRequest } from "./policy-hooks.ts";
import { toPolicyLimits } from "./policy-limits.ts";

/** What policies are made from. */
export interface PoliciesOptions {
  readonly rules: PolicyRules;
  /** @default those of `GatewayLimits` */
  readonly limits?: GatewayLimits | undefined;
  /** Whether callers are told apart: then no one of them has more than a quarter of the room for idempotency keys. @default true */
  readonly isShared?: boolean | undefined;
}

/** Whether what a source offers is there, and for whom. */
export interface SourceRule {
  readonly isEnabled: boolean;
  /** All of these must be held. */
  readonly scopes: readonly string[];
}

/** Policies around the calls of a registry. */
export interface Policies {
  /** Stand around every call, nested ones too, inside of observers: `registry.use(policies.hooks)`, last. */
  readonly hooks: Hooks;
  /** Gives an operation of a source as it is registered, with the scopes that policies ask for and what they say about its results; nothing for one that is left out. */
  admit(operation: AnyOperation, source?: string): AnyOperation | undefined;
  /** Whether an operation of a source that has not told of it yet would be left out. */
  leavesOut(operationId: string, source: string): boolean;
  /** The scopes that policies ask for where an operation of a source is called, known or not; all must be held. */
  scopesOf(operationId: string, source: string): readonly string[];
  /** Characters of a result that are sent whole over MCP; nothing where no policy says it. */
  budgetOf(operationId: string): number | undefined;
  /** What holds for what a source offers besides operations: resources and prompts. */
  ofSource(source: string): SourceRule;
  /** Asks a source for a resource or prompt, within the time, rate and concurrency that hold for it; `what` names it in errors. */
  runOfSource<T>(asked: SourceRequest, run: (signal: AbortSignal | undefined) => Promise<T>): Promise<T>;
  /** Forgets what holds for an operation, whose source may be another one now. */
  forget(operationId: string): void;
  /** Takes other rules and, unless left out, limits. Calls under way and those that wait go on; results are kept for operations that stay. */
  update(rules: PolicyRules, limits?: GatewayLimits): void;
  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void;
  /** Turns away calls that wait, ends those that several callers share, and forgets results; no timer is left. */
  close(): void;
}

/** Creates the policies of a gateway; a `TypeError` names a rule that makes no sense. */
export function createPolicies({ rules, limits, isShared = true }: PoliciesOptions): Policies {
  let book = new PolicyBook(rules);
  const hooks = new PolicyHooks(book, toPolicyLimits(limits), isShared);
  return {
    hooks,
    admit(operation, source = book.rules.sourceOf(operation.id)) {
      const policy = book.merge(operation.id, source);
      const ofSource = source === undefined ? undefined : book.rules.sources.get(source);
      return isAdmitted(operation, policy, ofSource) ? withPolicy(operation, policy) : undefined;
    },
    leavesOut(operationId, source) {
      const name = operationId.slice(source.length + 1);
      return !isAdmitted({ name }, book.merge(operationId, source), book.rules.sources.get(source));
    },
    scopesOf: (operationId, source) => book.merge(operationId, source).scopes ?? [],
    budgetOf: (operationId) => book.of(operationId).resultBudget,
    ofSource(source) {
      const { enabled = true, scopes = [] } = book.ofSource(source);
      return { isEnabled: enabled, scopes };
    },
    runOfSource: (asked, run) => hooks.runOfSource(asked, run),
    forget: (operationId) => book.forget(operationId),
    update(rules, limits) {
      book = new PolicyBook(rules);
      hooks.update(book, limits && toPolicyLimits(limits));
    },
    setShared: (isShared) => hooks.setShared(isShared),
    close: () => hooks.close(),
  };
}
