import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import type { DataPath, ListShape } from "./list-shape.ts";
import { toCount, valueAt, withValueAt } from "./next-input.ts";
import { LAST_PAGE, type PageFinder } from "./page-finder.ts";

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
