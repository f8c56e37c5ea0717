import { parsePointer } from "../../../core/json/json-pointer.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { checkNames, checkOption, describeValue } from "../../../core/options/check-options.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { PagingRule } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { typesOf } from "../response/schema-view.ts";
import { countFinder } from "./count-finder.ts";
import { type CursorPlace, cursorFinder } from "./cursor-finder.ts";
import { linkFinder, type ToInput } from "./link-finder.ts";
import { type DataPath, readListShape } from "./list-shape.ts";
import type { PageFinder } from "./page-finder.ts";
import { countsOf, declaresHeader } from "./paging-inputs.ts";

/** What each style of paging is told. */
const MEMBERS: Readonly<Record<PagingRule["style"], readonly string[]>> = {
  link: ["style"],
  cursor: ["style", "input", "next"],
  offset: ["style", "input", "size", "items"],
  page: ["style", "input", "size", "items"],
};
const REQUIRED = ["input", "next"];
const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,99}$/;

/** Throws a `TypeError` for a rule that fits no operation; `name` is where it was given. */
export function checkPagingRule(rule: unknown, name: string): void {
  if (rule === undefined || rule === false) return;
  if (!isPlainObject(rule)) {
    throw new TypeError(`${name} must be false or an object with a style; it is ${describeValue(rule)}.`);
  }
  const style = Object.hasOwn(rule, "style") ? rule["style"] : undefined;
  if (typeof style !== "string" || !Object.hasOwn(MEMBERS, style)) {
    throw new TypeError(`${name}.style must be one of "link", "cursor", "offset" and "page".`);
  }
  const known = MEMBERS[style as PagingRule["style"]];
  checkNames(rule, known, `${name}.`);
  for (const member of known) {
    const value = Object.hasOwn(rule, member) ? rule[member] : undefined;
    if (REQUIRED.includes(member)) checkRequired(value, member, { name, style });
    else checkOption(`${name}.${member}`, value, "text", typeof value === "string");
  }
  checkPlaces(rule, name);
}

function checkRequired(
  value: unknown,
  member: string,
  { name, style }: { readonly name: string; readonly style: string },
): void {
  if (typeof value === "string" && (value !== "" || member === "next")) return;
  const wanted =
    member === "input"
      ? 'the input that asks for a page, such as "cursor" or "/body/cursor"'
      : 'a JSON pointer to the next cursor, such as "/next", or the name of a response header';
  throw new TypeError(`${name}.${member} must be ${wanted}: pages by ${style} need it.`);
}

function checkPlaces(rule: Record<string, unknown>, name: string): void {
  const { next, items } = rule as { next?: string; items?: string };
  if (next !== undefined && !isPointer(next) && !HEADER.test(next)) throw noPlace(`${name}.next`, next);
  if (items !== undefined && !isPointer(items)) {
    throw new TypeError(
      `${name}.items must be a JSON pointer, such as ${JSON.stringify(`/${items.slice(0, 80)}`)}.`,
    );
  }
}

function noPlace(option: string, next: string): TypeError {
  const pointer = JSON.stringify(`/${next.slice(0, 80)}`);
  return new TypeError(
    `${option} must be a JSON pointer, such as ${pointer}, or the name of a response header, such as "X-Next-Cursor".`,
  );
}

function isPointer(text: string): boolean {
  return text === "" || text.startsWith("/");
}

/** Makes what looks for the next page as a rule says; throws a `TypeError` where the rule does not fit the operation. */
export function ruledFinder(
  rule: PagingRule,
  plan: OperationPlan,
  { outputSchema, toInput }: { readonly outputSchema: JsonSchema | undefined; readonly toInput: ToInput },
): PageFinder {
  if (rule.style === "link") return linkFinder(toInput, true);
  const parameter = ruledParameter(rule.input, "input", plan);
  const input = inputPath(rule.input);
  if (rule.style === "cursor") {
    const next = nextPlace(rule.next, plan);
    const types = parameter === undefined ? new Set<string>() : typesOf(parameter.schema, plan.definitions);
    return cursorFinder({ input, types, next });
  }
  const size = rule.size === undefined ? undefined : ruledParameter(rule.size, "size", plan);
  const shape = readListShape(outputSchema);
  const items = rule.items === undefined ? [] : parsePointer(rule.items);
  const counts = parameter
    ? countsOf(parameter, plan, { style: rule.style, size })
    : { first: rule.style === "page" ? 1 : 0 };
  const sizePath = rule.size === undefined ? undefined : inputPath(rule.size);
  return countFinder({ style: rule.style, items, shape, ...counts, input, size: sizePath });
}

/** Where an input lies that is named by its key, or as a pointer where it is inside of one. */
export function inputPath(input: string): DataPath {
  return input.startsWith("/") ? parsePointer(input) : [input];
}

function ruledParameter(input: string, option: string, plan: OperationPlan): ParameterPlan | undefined {
  const [key] = inputPath(input);
  const parameter = plan.parameters.find((one) => one.key === key);
  if (parameter !== undefined || (plan.body !== undefined && key === plan.body.key)) return parameter;
  const keys = plan.parameters.map((one) => `"${one.key}"`).join(", ");
  const within = plan.body === undefined ? "" : `, or lie in its body, such as "/${plan.body.key}/cursor"`;
  const place = `${plan.method} ${plan.path}`;
  throw new TypeError(
    `paging.${option} of ${place} must be one of its inputs (${keys || "it has none"})${within}.`,
  );
}

/** A name without a hyphen is hardly a header's unless the document says so. */
function nextPlace(next: string, plan: OperationPlan): CursorPlace["next"] {
  if (isPointer(next)) return { path: parsePointer(next) };
  const header = next.toLowerCase();
  const isHeader = HEADER.test(next) && (next.includes("-") || declaresHeader(plan, header));
  if (!isHeader) throw noPlace(`paging.next of ${plan.method} ${plan.path}`, next);
  return { header };
}
