import { parsePointer } from "../../../core/json/json-pointer.ts";
import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import type { PagingRule } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { successResponses } from "../response/declared-media.ts";
import { partsOf, typesOf } from "../response/schema-view.ts";
import { countFinder } from "./count-finder.ts";
import { createPaging, type Paging } from "./create-pager.ts";
import { cursorFinder, lastIdFinder } from "./cursor-finder.ts";
import { bodyLinkFinder, createToInput, linkFinder, type ToInput } from "./link-finder.ts";
import { type DataPath, type ListShape, plainName, readListShape } from "./list-shape.ts";
import { toCount } from "./next-input.ts";
import type { PageFinder } from "./page-finder.ts";

export type { Paging } from "./create-pager.ts";

/** Names without case and punctuation. */
const CURSORS = [
  ...[
    "cursor",
    "pagetoken",
    "nextpagetoken",
    "nextcursor",
    "startcursor",
    "pagecursor",
    "aftercursor",
    "nexttoken",
  ],
  ...[
    "continuationtoken",
    "continuation",
    "paginationtoken",
    "startingafter",
    "after",
    "pageafter",
    "startafter",
  ],
  ...["marker", "bookmark", "scrollid", "exclusivestartkey", "skiptoken", "next"],
];
const NEXT_CURSORS = [
  ...["nextcursor", "nextpagetoken", "nexttoken", "nextmarker", "nextcontinuationtoken", "continuationtoken"],
  ...[
    "nextpagecursor",
    "endcursor",
    "aftercursor",
    "cursors/after",
    "cursors/next",
    "cursor/next",
    "next/after",
  ],
  ...["next/cursor", "nextbookmark", "continuation", "lastevaluatedkey", "next"],
];
const OFFSETS = ["offset", "skip", "startindex", "startat", "start", "from", "pageoffset"];
const PAGES = ["page", "pagenumber", "pageno", "pageindex", "pagenum", "currentpage"];
const SIZES = [
  ...[
    "limit",
    "perpage",
    "pagesize",
    "size",
    "pagelimit",
    "maxresults",
    "count",
    "top",
    "take",
    "rows",
    "max",
  ],
  ...["resultsperpage", "itemsperpage", "maxitems"],
];

/**
 * Finds out how the pages of an operation are asked for: as `rule` says, or else from the document. `origin` is where the operation
 * is called, which addresses of pages must be at; the servers of the document where it is not given.
 */
export function findPaging(
  plan: OperationPlan,
  outputSchema: JsonSchema | undefined,
  rule?: PagingRule | false,
  origin?: string,
): Paging | undefined {
  if (rule === false) return undefined;
  const toInput = createToInput(plan, origin);
  if (rule !== undefined) return createPaging([ruledFinder(rule, plan, outputSchema, toInput)]);
  // Waybill says where a page ends in a header of its own, and every client follows that.
  if (plan.waybill !== undefined || plan.method !== "GET") return undefined;
  const query = plan.parameters.filter((parameter) => parameter.in === "query");
  if (query.length === 0) return undefined;
  return createPaging(foundFinders(plan, query, readListShape(outputSchema), toInput));
}

/** In the order of how sure each is. */
function foundFinders(
  plan: OperationPlan,
  query: readonly ParameterPlan[],
  shape: ListShape,
  toInput: ToInput,
): readonly PageFinder[] {
  const isDeclared = successResponses(plan).some(({ headers }) => Object.hasOwn(headers, "link"));
  const page = pick(query, PAGES, (parameter) => isCount(parameter, plan));
  const finders = [
    linkFinder(toInput, isDeclared),
    foundCursor(plan, query, shape, toInput),
    shape.nextLink && bodyLinkFinder(toInput, shape.nextLink),
    page && shape.nextPage && cursorFinder({ ...placeOf(page, plan), next: { path: shape.nextPage } }),
    foundCount(plan, query, shape, page),
  ];
  return finders.filter((finder) => finder !== undefined);
}

function foundCursor(
  plan: OperationPlan,
  query: readonly ParameterPlan[],
  shape: ListShape,
  toInput: ToInput,
): PageFinder | undefined {
  const { hasMore, items, hasIds } = shape;
  const parameter = pick(query, CURSORS) ?? pick(query, ["offset", "page"], (one) => !isCount(one, plan));
  if (parameter === undefined) return undefined;
  const name = plainName(parameter.name);
  const isNamedAsCount = name === "offset" || name === "page";
  const names = [`next${name}`, ...(isNamedAsCount ? [] : NEXT_CURSORS), name];
  const path = names.map((wanted) => shape.scalars.get(wanted)).find((found) => found !== undefined);
  const place = { ...placeOf(parameter, plan), hasMore };
  if (path !== undefined) return cursorFinder({ ...place, next: { path } }, toInput);
  const isById = name === "startingafter" || name === "after" || name === "startafter";
  return isById && hasMore && items && hasIds ? lastIdFinder(place, items) : undefined;
}

function foundCount(
  plan: OperationPlan,
  query: readonly ParameterPlan[],
  shape: ListShape,
  page: ParameterPlan | undefined,
): PageFinder | undefined {
  const { items } = shape;
  const offset = pick(query, OFFSETS, (parameter) => isCount(parameter, plan));
  const size = pick(query, SIZES, (parameter) => isCount(parameter, plan));
  const counted = page ?? (size === undefined ? undefined : offset);
  if (items === undefined || counted === undefined) return undefined;
  const style = counted === page ? "page" : "offset";
  return countFinder({ style, items, shape, ...countsOf(counted, style, size, plan) });
}

function ruledFinder(
  rule: PagingRule,
  plan: OperationPlan,
  outputSchema: JsonSchema | undefined,
  toInput: ToInput,
): PageFinder {
  if (rule.style === "link") return linkFinder(toInput, true);
  const parameter = ruledParameter(rule.input, "input", plan);
  const input = pathOf(rule.input);
  if (rule.style === "cursor") {
    const isPointer = rule.next === "" || rule.next.startsWith("/");
    const next = isPointer ? { path: parsePointer(rule.next) } : { header: rule.next.toLowerCase() };
    const types = parameter === undefined ? new Set<string>() : typesOf(parameter.schema, plan.definitions);
    return cursorFinder({ input, types, next });
  }
  const size = rule.size === undefined ? undefined : ruledParameter(rule.size, "size", plan);
  const shape = readListShape(outputSchema);
  const items = rule.items === undefined ? [] : parsePointer(rule.items);
  const counts = parameter
    ? countsOf(parameter, rule.style, size, plan)
    : { first: rule.style === "page" ? 1 : 0 };
  const sizePath = rule.size === undefined ? undefined : pathOf(rule.size);
  return countFinder({ style: rule.style, items, shape, ...counts, input, size: sizePath });
}

/** An input is named by its key, or as a pointer where it is inside of one. */
function pathOf(input: string): DataPath {
  return input.startsWith("/") ? parsePointer(input) : [input];
}

function ruledParameter(input: string, option: string, plan: OperationPlan): ParameterPlan | undefined {
  const [key] = pathOf(input);
  const parameter = plan.parameters.find((one) => one.key === key);
  if (parameter !== undefined || (plan.body !== undefined && key === plan.body.key)) return parameter;
  const keys = plan.parameters.map((one) => `"${one.key}"`).join(", ");
  const place = `${plan.method} ${plan.path}`;
  throw new TypeError(`paging.${option} of ${place} must be one of its inputs (${keys || "it has none"}).`);
}

function placeOf(parameter: ParameterPlan, plan: OperationPlan) {
  return { input: [parameter.key], types: typesOf(parameter.schema, plan.definitions) };
}

function countsOf(
  counted: ParameterPlan,
  style: "offset" | "page",
  size: ParameterPlan | undefined,
  plan: OperationPlan,
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
  for (const part of partsOf(schema, plan.definitions)) {
    const value = isObject(part) ? toCount(part[keyword]) : undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}

function isCount({ schema }: ParameterPlan, plan: OperationPlan): boolean {
  const types = typesOf(schema, plan.definitions);
  return types.size === 0 || types.has("integer") || types.has("number");
}

function pick(
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
