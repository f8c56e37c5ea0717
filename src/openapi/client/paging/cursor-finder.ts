import { isPlainObject } from "../../../core/json/json-value.ts";
import type { ToInput } from "./link-finder.ts";
import type { DataPath } from "./list-shape.ts";
import { toCursor, valueAt, withValueAt } from "./next-input.ts";
import { LAST_PAGE, type NextPage, type PageFinder } from "./page-finder.ts";

/** Where a cursor comes from and goes to. */
export interface CursorPlace {
  /** Where in the input it goes. */
  readonly input: DataPath;
  /** Where in the data it is, or in which header. */
  readonly next: { readonly path: DataPath } | { readonly header: string };
  /** Types the input takes; any where empty. */
  readonly types: ReadonlySet<string>;
  /** Where the data says whether there is more. */
  readonly hasMore?: DataPath | undefined;
}

/** Finds the next page by the cursor that a page names; one that names none is the last. */
export function cursorFinder(place: CursorPlace, toInput?: ToInput): PageFinder {
  const { next, hasMore } = place;
  return ({ data, meta }, input) => {
    if ("path" in next && !isPlainObject(data)) return undefined;
    if (hasMore !== undefined && valueAt(data, hasMore) === false) return LAST_PAGE;
    const found = "path" in next ? valueAt(data, next.path) : headerIn(meta, next.header);
    if (typeof found === "string" && toInput !== undefined && isAddress(found)) return toInput(found, input);
    if (found === undefined || found === null || found === "" || found === false || found === 0)
      return LAST_PAGE;
    const cursor = toCursor(found);
    return cursor === undefined ? undefined : pageAt(cursor, place, input);
  };
}

/** Says the number of the next page; empty on the last. */
export const NEXT_PAGE_HEADER = "x-next-page";

/** Finds the next page by its number in `X-Next-Page`; where that is declared, a response without it is the last page. */
export function nextPageFinder(place: Omit<CursorPlace, "next">, isDeclared: boolean): PageFinder {
  const find = cursorFinder({ ...place, next: { header: NEXT_PAGE_HEADER } });
  return (envelope, input) => {
    const isSaid = headerIn(envelope.meta, NEXT_PAGE_HEADER) !== undefined;
    return isSaid || isDeclared ? find(envelope, input) : undefined;
  };
}

/** Finds the next page by the id of the last item, where pages say whether there is more. */
export function lastIdFinder(place: Omit<CursorPlace, "next">, items: DataPath): PageFinder {
  return ({ data }, input) => {
    const list = valueAt(data, items);
    const more = place.hasMore === undefined ? undefined : valueAt(data, place.hasMore);
    if (!Array.isArray(list) || typeof more !== "boolean") return undefined;
    if (!more || list.length === 0) return LAST_PAGE;
    const cursor = toCursor(valueAt(list.at(-1), ["id"]));
    return cursor === undefined ? undefined : pageAt(cursor, place, input);
  };
}

function pageAt(cursor: string | number, place: Omit<CursorPlace, "next">, input: unknown): NextPage {
  const { types } = place;
  const isNumber = types.has("integer") || types.has("number");
  const isDigits = typeof cursor === "string" && /^[0-9]{1,15}$/.test(cursor);
  const value = types.has("string") ? String(cursor) : isNumber && isDigits ? Number(cursor) : cursor;
  return { isLast: false, token: String(cursor), input: withValueAt(input, place.input, value) };
}

/** Cursors may begin with a slash, addresses with one have a query. */
function isAddress(text: string): boolean {
  return /^https?:\/\//i.test(text) || text.startsWith("?") || (text.startsWith("/") && text.includes("?"));
}

function headerIn(meta: Parameters<PageFinder>[0]["meta"], name: string): unknown {
  return meta.source === "http" && Object.hasOwn(meta.headers, name) ? meta.headers[name] : undefined;
}
