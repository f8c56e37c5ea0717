import type { PageFacts, ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { Pager } from "../../../core/operation/operation-types.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { safeLine } from "../../../core/text/clean-text.ts";
import type { PagingRule } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import {
  countFinder,
  cursorFinder,
  lastIdFinder,
  NEXT_PAGE_HEADER,
  nextPageFinder,
} from "./cursor-finder.ts";
import { bodyLinkFinder, createToInput, linkFinder, type ToInput } from "./link-finder.ts";
import { type ListShape, type NextPage, type PageFinder, plainName, readListShape } from "./list-shape.ts";
import {
  countsOf,
  declaresHeader,
  inputPath,
  isCount,
  parameterPlaceOf,
  pick,
  ruledFinder,
} from "./paging-rule.ts";

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

interface FindPagingOptions {
  /** How pages are asked for; false where there are none. @default what the document says */
  readonly rule?: PagingRule | false | undefined;
  /** Where the operation is called, which addresses of pages must be at. @default the servers of the document */
  readonly origin?: string | undefined;
}

/**
 * Finds out how the pages of an operation are asked for: as `rule` says, or else from the document, and from `Link` headers that
 * responses have, declared or not.
 */
export function findPaging(
  plan: OperationPlan,
  outputSchema: JsonSchema | undefined,
  { rule, origin }: FindPagingOptions = {},
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
    page && nextPageFinder(parameterPlaceOf(page, plan), declaresHeader(plan, NEXT_PAGE_HEADER)),
    foundCursor(listing, toInput),
    shape.nextLink && bodyLinkFinder(toInput, shape.nextLink),
    page &&
      shape.nextPage &&
      cursorFinder({ ...parameterPlaceOf(page, plan), next: { path: shape.nextPage } }),
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
  const place = { ...parameterPlaceOf(parameter, plan), hasMore };
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

/** The pages of one operation. */
export interface Paging {
  readonly pager: Pager;
  /** What a result says of the page after it; `{}` on the last, nothing where nobody can tell. */
  factsOf(envelope: ResponseEnvelope, input: unknown): PageFacts | undefined;
}

/**
 * Makes one pager of several ways to find the next page: the first that can tell is believed. Where a page is named that no input asks
 * for, the others are tried, and the pager fails unless one of them has it.
 */
function createPaging(finders: readonly PageFinder[]): Paging {
  const find = (envelope: ResponseEnvelope, input: unknown) => findNext(finders, envelope, input);
  return {
    pager: {
      next(envelope, input) {
        const found = find(envelope, input);
        if (found === undefined || found.isLast) return undefined;
        // An end here would look like the end of the list.
        if ("undeclared" in found) throw notDeclared(found.undeclared);
        return found.input;
      },
    },
    factsOf(envelope, input) {
      const found = find(envelope, input);
      if (found === undefined || "undeclared" in found) return undefined;
      if (found.isLast) return {};
      const { token: next, input: named } = found;
      return isCursorAlone(named, input, next) ? { next } : { next, input: named };
    },
  };
}

/** Every client makes that of a cursor by itself. */
function isCursorAlone(named: unknown, input: unknown, cursor: string): boolean {
  if (!isPlainObject(named) || !Object.hasOwn(named, "cursor") || named["cursor"] !== cursor) return false;
  if (typeof input === "object" && input !== null && !isPlainObject(input)) return false;
  const before = isPlainObject(input) ? input : {};
  const isSame = (name: string) => Object.hasOwn(before, name) && before[name] === named[name];
  const names = Object.keys(named).filter((name) => name !== "cursor");
  return names.every(isSame) && Object.keys(before).every((name) => Object.hasOwn(named, name));
}

function findNext(
  finders: readonly PageFinder[],
  envelope: ResponseEnvelope,
  input: unknown,
): NextPage | undefined {
  if (envelope.meta.isError === true) return undefined;
  let named: NextPage | undefined;
  try {
    for (const find of finders) {
      const found = find(envelope, input);
      if (found === undefined) continue;
      if (found.isLast) return named ?? found;
      if (!("undeclared" in found)) return found;
      named ??= found;
    }
  } catch {
    // Only an input that cannot be read gets here: its caller is told when it is sent.
  }
  return named;
}

const MOST_SHOWN = 3;

function notDeclared(names: readonly string[]): CallError {
  const shown = names.slice(0, MOST_SHOWN).map((name) => `"${safeLine(name, 80)}"`);
  const message = `The server names a next page by ${shown.join(", ")}, for which the operation has no input: declare it as a query parameter with an overlay.`;
  return new CallError("NOT_IMPLEMENTED", message);
}
