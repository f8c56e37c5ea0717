import { parsePointer } from "../../core/json/json-pointer.ts";
import { canonicalJson, isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { checkOption } from "../../core/options/check-options.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { LONGEST_KEEP_MS } from "../state/state-store.ts";

/** Where people can be asked: the gateway's own page, the inspector, the command, a webhook, or the caller's own client. */
export const APPROVAL_PLACES = ["page", "inspector", "command", "webhook", "client"] as const;

/** One of them. */
export type ApprovalPlace = (typeof APPROVAL_PLACES)[number];

/** Which calls wait for a person, who may say yes, and where they are asked. */
export interface ApprovePolicy {
  /**
   * Which calls wait: all, those of operations that may destroy something, or none. An operation that changes something and does not say of itself
   * whether that destroys counts as one that may. @default "all"
   */
  readonly calls?: "all" | "destructive" | "none" | undefined;
  /** Of those, only calls wait whose input fits at least one of these. @default whatever the input */
  readonly rules?: readonly InputRule[] | undefined;
  /** Scopes that an approver holds, all of them. @default ["waybill:approve"] */
  readonly scopes?: readonly string[] | undefined;
  /** Who may approve, by subject. @default everybody with the scopes */
  readonly subjects?: readonly string[] | undefined;
  /** Callers may approve their own calls. @default false */
  readonly own?: boolean | undefined;
  /** Whose word counts; that of the caller's own client only where it is named. @default ["page", "inspector", "command", "webhook"] */
  readonly by?: readonly ApprovalPlace[] | undefined;
  /** Milliseconds that a call is held before it is answered with `APPROVAL_REQUIRED`; no longer than its caller waits. @default 55_000 */
  readonly holdMs?: number | undefined;
  /** Milliseconds in which a request may be decided, and what was approved be called. @default 3_600_000 */
  readonly expiresMs?: number | undefined;
}

/** A rule over the input of a call: it fits where all of its members do. */
export interface InputRule {
  /** JSON pointer into the input, in which `*` stands for every item or member. @default the input itself */
  readonly pointer?: string | undefined;
  /** The value is one of these. */
  readonly in?: readonly (string | number | boolean | null)[] | undefined;
  /** The value is larger. What is there and is no number fits, as it cannot be compared. */
  readonly above?: number | undefined;
  /** The value is as large or larger. */
  readonly atLeast?: number | undefined;
  /** The value is smaller. */
  readonly below?: number | undefined;
  /** The value is as small or smaller. */
  readonly atMost?: number | undefined;
  /** The value matches this JSON Schema. */
  readonly schema?: JsonSchemaObject | undefined;
}

/** The scope that approves, where a policy names none. */
export const APPROVE_SCOPE = "waybill:approve";

/** What holds where a policy says nothing. */
export const APPROVE_DEFAULTS = {
  scopes: [APPROVE_SCOPE],
  by: ["page", "inspector", "command", "webhook"],
  holdMs: 55_000,
  expiresMs: 3_600_000,
} as const satisfies ApprovePolicy;

/** Bounds of the rules of one policy. */
export const RULE_LIMITS = {
  rules: 100,
  /** Values of one input that its pointer leads to; an input with more fits. */
  places: 10_000,
} as const;

const COMPARISONS = ["above", "atLeast", "below", "atMost"] as const;

/** Throws a `TypeError` that names what nobody could be asked by. */
export function checkApprove(what: string, policy: ApprovePolicy): void {
  const { calls, rules, by, expiresMs, holdMs, scopes, subjects } = policy;
  const isOneOf = calls === undefined || ["all", "destructive", "none"].includes(calls);
  checkOption(`${what}.calls`, calls, '"all", "destructive" or "none"', isOneOf);
  const isBy = by === undefined || (by.length > 0 && by.every((place) => APPROVAL_PLACES.includes(place)));
  checkOption(`${what}.by`, by, `a list of ${APPROVAL_PLACES.join(", ")}`, isBy);
  for (const [name, list] of Object.entries({ scopes, subjects })) {
    const isTexts =
      list === undefined || (Array.isArray(list) && list.every((one) => typeof one === "string"));
    checkOption(`${what}.${name}`, list, "a list of texts", isTexts);
  }
  checkOption(`${what}.holdMs`, holdMs, "a whole number, 0 or more", isTime(holdMs, 0, 2_147_483_647));
  const most = LONGEST_KEEP_MS;
  const isExpiry = isTime(expiresMs, 1_000, most);
  checkOption(`${what}.expiresMs`, expiresMs, `a whole number from 1000 to ${most}`, isExpiry);
  const isRules = rules === undefined || (Array.isArray(rules) && rules.length <= RULE_LIMITS.rules);
  checkOption(`${what}.rules`, rules, `a list of at most ${RULE_LIMITS.rules} rules`, isRules);
  for (const [at, rule] of (rules ?? []).entries()) checkRule(`${what}.rules[${at}]`, rule);
}

function isTime(value: number | undefined, least: number, most: number): boolean {
  return value === undefined || (Number.isSafeInteger(value) && value >= least && value <= most);
}

function checkRule(what: string, rule: InputRule): void {
  const { pointer, schema } = rule;
  const isPointer = pointer === undefined || pointer === "" || pointer.startsWith("/");
  checkOption(`${what}.pointer`, pointer, 'a JSON pointer, such as "/amount"', isPointer);
  checkOption(`${what}.in`, rule.in, "a list of texts, numbers, true, false or null", isScalars(rule.in));
  for (const name of COMPARISONS) {
    const value = rule[name];
    checkOption(`${what}.${name}`, value, "a number", value === undefined || Number.isFinite(value));
  }
  if (schema === undefined) return;
  try {
    compileSchema(schema);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(`${what}.schema cannot be used: ${why}`, { cause });
  }
}

function isScalars(values: InputRule["in"]): boolean {
  return (
    values === undefined ||
    (Array.isArray(values) && values.every((one) => !isObject(one) && !Array.isArray(one)))
  );
}

/** Tells whether a call waits for a person: by what its operation is, and by what its input says. */
export function needsApproval(
  { calls = "all", rules }: ApprovePolicy,
  operation: AnyOperation,
  input: unknown,
): boolean {
  if (calls === "none" || (calls === "destructive" && !mayDestroy(operation))) return false;
  if (rules === undefined) return true;
  const inputs = readingsOf(operation, input);
  return rules.some((rule) => inputs.some((one) => fitsRule(rule, one)));
}

/** As MCP has it: what changes something and does not say that it destroys nothing may destroy something. */
function mayDestroy({ type, annotations = {} }: AnyOperation): boolean {
  if (annotations.destructive !== undefined) return annotations.destructive;
  return annotations.readOnly !== true && type === "mutation";
}

/** The input as it was given, and with the defaults that the operation declares: the operation may run with either. */
function readingsOf({ inputSchema }: AnyOperation, input: unknown): readonly unknown[] {
  if (inputSchema === undefined) return [input];
  const schema = toOperationSchema(inputSchema, "input");
  return schema.hasDefaults && schema.check(input) ? [input, schema.fillDefaults(input)] : [input];
}

function fitsRule(rule: InputRule, input: unknown): boolean {
  const places = valuesAt(input, parsePointer(rule.pointer ?? ""));
  return places === undefined || places.some((value) => fitsValue(rule, value));
}

/** The values that a pointer leads to; nothing where there are too many to look at. */
function valuesAt(input: unknown, keys: readonly string[]): readonly unknown[] | undefined {
  let found: unknown[] = [input];
  for (const key of keys) {
    const next: unknown[] = [];
    for (const value of found) {
      if (typeof value !== "object" || value === null) continue;
      const isAll = key === "*";
      const members = isAll
        ? Object.values(value)
        : Object.hasOwn(value, key)
          ? [Reflect.get(value, key)]
          : [];
      if (next.length + members.length > RULE_LIMITS.places) return undefined;
      for (const member of members) if (member !== undefined) next.push(member);
    }
    found = next;
  }
  return found;
}

function fitsValue(rule: InputRule, value: unknown): boolean {
  const { above, atLeast, below, atMost, schema } = rule;
  if (rule.in !== undefined && !rule.in.some((one) => isSameScalar(one, value))) return false;
  if (COMPARISONS.some((name) => rule[name] !== undefined) && typeof value === "number") {
    if (above !== undefined && !(value > above)) return false;
    if (atLeast !== undefined && !(value >= atLeast)) return false;
    if (below !== undefined && !(value < below)) return false;
    if (atMost !== undefined && !(value <= atMost)) return false;
  }
  return schema === undefined || compiledRule(schema).check(value);
}

function isSameScalar(wanted: unknown, value: unknown): boolean {
  return !isPlainObject(value) && !Array.isArray(value) && canonicalScalar(wanted) === canonicalScalar(value);
}

function canonicalScalar(value: unknown): string {
  return canonicalJson(value as string | number | boolean | null);
}

const COMPILED = new WeakMap<JsonSchemaObject, ReturnType<typeof compileSchema>>();

function compiledRule(schema: JsonSchemaObject): ReturnType<typeof compileSchema> {
  const known = COMPILED.get(schema) ?? compileSchema(schema);
  COMPILED.set(schema, known);
  return known;
}
