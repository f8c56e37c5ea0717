import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { ToInput } from "./link-finder.ts";
import {
  type DataPath,
  LAST_PAGE,
  type ListShape,
  type NextPage,
  type PageFinder,
  toCount,
  toCursor,
  valueAt,
  withValueAt,
} from "./list-shape.ts";

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

/** How pages are counted. */
export interface CountPlace {
  readonly style: "offset" | "page";
  /** Where in the input the count goes. */
  readonly input: DataPath;
  /** The count of the first page. */
  readonly first: number;
  /** Where in the input the size of a page is. */
  readonly size?: DataPath | undefined;
  /** The size of a page that nobody asks for otherwise. */
  readonly usualSize?: number | undefined;
  /** The largest size of a page. */
  readonly largestSize?: number | undefined;
  readonly items: DataPath;
  readonly shape: Pick<ListShape, "hasMore" | "isLast" | "total" | "totalPages">;
}

/** Where one page stands. */
interface Standing {
  readonly envelope: ResponseEnvelope;
  /** The count it was asked for with, from nought. */
  readonly counted: number;
  readonly length: number;
  readonly size: number | undefined;
}

/** Finds the next page by counting items or pages. */
export function countFinder(place: CountPlace): PageFinder {
  const { style, first } = place;
  return (envelope, input) => {
    const items = valueAt(envelope.data, place.items);
    if (!Array.isArray(items)) return undefined;
    const current = toCount(valueAt(input, place.input)) ?? first;
    const { length } = items;
    const standing = { envelope, counted: current - first, length, size: sizeOf(place, input) };
    if (length === 0 || isLast(place, standing)) return LAST_PAGE;
    const next = style === "offset" ? current + length : current + 1;
    return { isLast: false, token: String(next), input: withValueAt(input, place.input, next) };
  };
}

function sizeOf({ size, usualSize, largestSize }: CountPlace, input: unknown): number | undefined {
  const asked = size === undefined ? undefined : toCount(valueAt(input, size));
  const known = asked ?? usualSize;
  return known === undefined || largestSize === undefined ? known : Math.min(known, largestSize);
}

/** What the page itself says counts more than its length, which a server may have cut. */
function isLast({ style, shape }: CountPlace, standing: Standing): boolean {
  const { envelope, counted, length, size } = standing;
  const said = saysLast(envelope.data, shape);
  if (said !== undefined) return said;
  const pages = shape.totalPages && toCount(valueAt(envelope.data, shape.totalPages));
  if (style === "page" && pages !== undefined) return counted + 1 >= pages;
  const total = totalOf(envelope, shape);
  if (total !== undefined && style === "offset") return counted + length >= total;
  if (total !== undefined && size !== undefined && counted * size + length >= total) return true;
  return size !== undefined && length < size;
}

function saysLast(data: unknown, { hasMore, isLast }: CountPlace["shape"]): boolean | undefined {
  const more = hasMore && valueAt(data, hasMore);
  if (typeof more === "boolean") return !more;
  const last = isLast && valueAt(data, isLast);
  return typeof last === "boolean" ? last : undefined;
}

function totalOf({ data, meta }: ResponseEnvelope, { total }: CountPlace["shape"]): number | undefined {
  const said = total && toCount(valueAt(data, total));
  if (said !== undefined || meta.source !== "http") return said;
  for (const name of ["x-total-count", "x-total"]) {
    const header = Object.hasOwn(meta.headers, name) ? toCount(meta.headers[name]) : undefined;
    if (header !== undefined) return header;
  }
  return undefined;
}
