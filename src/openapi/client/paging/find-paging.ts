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
import { ruledFinder } from "./paging-rule.ts";

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
  if (rule !== undefined) return createPaging([ruledFinder(rule, plan, { outputSchema, toInput })]);
  // Waybill says where a page ends in a header of its own, and every client follows that.
  if (plan.waybill !== undefined || plan.method !== "GET") return undefined;
  const query = plan.parameters.filter((parameter) => parameter.in === "query");
  if (query.length === 0) return undefined;
  return createPaging(foundFinders({ plan, query, shape: readListShape(outputSchema) }, toInput));
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
  const isDeclared = (header: string) => declaresHeader(plan, header);
  const page = pick(query, PAGES, (parameter) => isCount(parameter, plan));
  const finders = [
    linkFinder(toInput, isDeclared("link")),
    page && nextPageFinder(placeOf(page, plan), isDeclared(NEXT_PAGE_HEADER)),
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
