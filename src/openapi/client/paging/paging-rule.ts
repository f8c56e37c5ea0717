import { parsePointer } from "../../../core/json/json-pointer.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { checkNames, checkOption, describeValue } from "../../../core/options/check-options.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { viewWithDefinitions } from "../definitions.ts";
import type { PagingRule } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { successResponses } from "../response/output-schema.ts";
import { type CursorPlace, countFinder, cursorFinder } from "./cursor-finder.ts";
import { linkFinder, type ToInput } from "./link-finder.ts";
import { type DataPath, type PageFinder, plainName, readListShape, toCount } from "./list-shape.ts";

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
    const types =
      parameter === undefined
        ? new Set<string>()
        : viewWithDefinitions(parameter.schema, plan.definitions).types;
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

/** Tells whether successes of an operation have a header, whose name is in lower case, by the document. */
export function declaresHeader(plan: OperationPlan, name: string): boolean {
  return successResponses(plan).some(({ headers }) =>
    Object.keys(headers).some((declared) => declared.toLowerCase() === name),
  );
}

/** Where the value of a parameter goes, and which types it takes. */
export function parameterPlaceOf(parameter: ParameterPlan, plan: OperationPlan) {
  return { input: [parameter.key], types: viewWithDefinitions(parameter.schema, plan.definitions).types };
}

/** What the document says of a parameter that counts, and of the one for the size of a page. */
export function countsOf(
  counted: ParameterPlan,
  plan: OperationPlan,
  { style, size }: { readonly style: "offset" | "page"; readonly size: ParameterPlan | undefined },
) {
  const isFromOne = style === "page" || plainName(counted.name) === "startindex";
  const lowest = style === "page" ? keywordOf(counted, "minimum", plan) : undefined;
  return {
    input: [counted.key],
    first: keywordOf(counted, "default", plan) ?? lowest ?? (isFromOne ? 1 : 0),
    ...(size !== undefined && {
      size: [size.key],
      usualSize: keywordOf(size, "default", plan),
      largestSize: keywordOf(size, "maximum", plan),
    }),
  };
}

function keywordOf({ schema }: ParameterPlan, keyword: string, plan: OperationPlan): number | undefined {
  const { parts } = viewWithDefinitions(schema, plan.definitions);
  return parts.map((part) => toCount(part[keyword])).find((value) => value !== undefined);
}

/** Tells whether a parameter takes numbers. */
export function isCount({ schema }: ParameterPlan, plan: OperationPlan): boolean {
  const { types } = viewWithDefinitions(schema, plan.definitions);
  return types.size === 0 || types.has("integer") || types.has("number");
}

/** Gives the parameter with the first of these names, without case and punctuation. */
export function pick(
  parameters: readonly ParameterPlan[],
  names: readonly string[],
  isFit: (parameter: ParameterPlan) => boolean = () => true,
): ParameterPlan | undefined {
  for (const name of names) {
    const found = parameters.find((parameter) => plainName(parameter.name) === name && isFit(parameter));
    if (found !== undefined) return found;
  }
  return undefined;
}
