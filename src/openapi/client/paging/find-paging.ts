import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { PagingRule } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { countFinder } from "./count-finder.ts";
import { createPaging, type Paging } from "./create-pager.ts";
import { cursorFinder, lastIdFinder, NEXT_PAGE_HEADER, nextPageFinder } from "./cursor-finder.ts";
import { bodyLinkFinder, createToInput, linkFinder, type ToInput } from "./link-finder.ts";
import { type ListShape, plainName, readListShape } from "./list-shape.ts";
import type { PageFinder } from "./page-finder.ts";
import { countsOf, declaresHeader, isCount, pick, placeOf } from "./paging-inputs.ts";
import { inputPath, ruledFinder } from "./paging-rule.ts";

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
 * Finds out how the pages of an operation are asked for: as `rule` says, or else from the document, and from `Link` headers that
 * responses have, declared or not. `origin` is where the operation is called, which addresses of pages must be at; the servers of the
 * document where it is not given.
 */
export function findPaging(
  plan: OperationPlan,
  outputSchema: JsonSchema | undefined,
  rule?: PagingRule | false,
  origin?: string,
): Paging | undefined {
  if (rule === false) return undefined;
  if (rule !== undefined) return createPaging(ruledFinders(rule, plan, { outputSchema, origin }));
  // Waybill says where a page ends in a header of its own, and every client follows that.
  if (plan.waybill !== undefined || plan.method !== "GET") return undefined;
  const query = plan.parameters.filter((parameter) => parameter.in === "query");
  const pageKeys = new Set(query.filter(isOfPages).map(({ key }) => key));
  const fromLink = createToInput(plan, origin, { tellsUndeclared: true, pageKeys });
  if (query.length === 0) return createPaging([linkFinder(fromLink, false)]);
  const listing = { plan, query, shape: readListShape(outputSchema) };
  const found = foundFinders(listing, createToInput(plan, origin, { pageKeys }));
  return createPaging([linkFinder(fromLink, declaresHeader(plan, "link")), ...found]);
}

function isOfPages({ name }: ParameterPlan): boolean {
  return [...CURSORS, ...OFFSETS, ...PAGES].includes(plainName(name));
}

/** What a rule says, and what a `Link` header of a response says: that comes before counting, and after a cursor that the page names. */
function ruledFinders(
  rule: PagingRule,
  plan: OperationPlan,
  {
    outputSchema,
    origin,
  }: { readonly outputSchema: JsonSchema | undefined; readonly origin?: string | undefined },
): readonly PageFinder[] {
  const reading =
    rule.style === "link"
      ? { tellsUndeclared: true }
      : { pageKeys: new Set(inputPath(rule.input).slice(0, 1)) };
  const toInput = createToInput(plan, origin, reading);
  const ruled = ruledFinder(rule, plan, { outputSchema, toInput });
  const link = linkFinder(toInput, false);
  switch (rule.style) {
    case "link":
      return [ruled];
    case "cursor":
      return [unlessLast(ruled), unlessLast(link), ruled];
    case "offset":
    case "page":
      return [link, ruled];
  }
}

/** Finds a next page alone, and leaves it to others to say that there is none. */
function unlessLast(find: PageFinder): PageFinder {
  return (envelope, input) => {
    const found = find(envelope, input);
    return found?.isLast === true ? undefined : found;
  };
}

/** An operation that may give a list. */
interface Listing {
  readonly plan: OperationPlan;
  readonly query: readonly ParameterPlan[];
  readonly shape: ListShape;
}

/** In the order of how sure each is. */
function foundFinders(listing: Listing, toInput: ToInput): readonly PageFinder[] {
  const { plan, query, shape } = listing;
  const page = pick(query, PAGES, (parameter) => isCount(parameter, plan));
  const finders = [
    page && nextPageFinder(placeOf(page, plan), declaresHeader(plan, NEXT_PAGE_HEADER)),
    foundCursor(listing, toInput),
    shape.nextLink && bodyLinkFinder(toInput, shape.nextLink),
    page && shape.nextPage && cursorFinder({ ...placeOf(page, plan), next: { path: shape.nextPage } }),
    foundCount(listing, page),
  ];
  return finders.filter((finder) => finder !== undefined);
}

function foundCursor({ plan, query, shape }: Listing, toInput: ToInput): PageFinder | undefined {
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
  { plan, query, shape }: Listing,
  page: ParameterPlan | undefined,
): PageFinder | undefined {
  const { items } = shape;
  const offset = pick(query, OFFSETS, (parameter) => isCount(parameter, plan));
  const size = pick(query, SIZES, (parameter) => isCount(parameter, plan));
  const counted = page ?? (size === undefined ? undefined : offset);
  if (items === undefined || counted === undefined) return undefined;
  const style = counted === page ? "page" : "offset";
  return countFinder({ style, items, shape, ...countsOf(counted, plan, { style, size }) });
}
