import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { type SchemaView, viewSchema } from "../../../core/schema/schema-view.ts";

/** Where a value lies in the data: the keys that lead to it. */
export type DataPath = readonly string[];

/** What a schema tells of a page: where its items are, and what it says about other pages. */
export interface ListShape {
  readonly items: DataPath | undefined;
  /** Whether the items have an `id`. */
  readonly hasIds: boolean;
  readonly hasMore: DataPath | undefined;
  /** True on the last page. */
  readonly isLast: DataPath | undefined;
  readonly total: DataPath | undefined;
  readonly totalPages: DataPath | undefined;
  /** The number of the next page. */
  readonly nextPage: DataPath | undefined;
  /** The address of the next page. */
  readonly nextLink: DataPath | undefined;
  /** Text or numbers by name, without case and punctuation. */
  readonly scalars: ReadonlyMap<string, DataPath>;
}

const CONTAINERS = new Set([
  ...["meta", "metadata", "pagination", "paging", "page", "pageinfo", "pages", "links", "cursor", "cursors"],
  ...["responsemetadata", "next", "data", "result", "response", "embedded", "list", "info", "pagemetadata"],
]);
const ITEM_NAMES = [
  "items",
  "data",
  "results",
  "result",
  "values",
  "value",
  "records",
  "entries",
  "content",
  "list",
  "rows",
];
const MORE = ["hasmore", "hasnext", "hasnextpage", "more", "moreresults", "hasmoreresults", "hasmoreitems"];
const LAST = ["last", "islast", "islastpage", "lastpage"];
const TOTAL = [
  "total",
  "totalcount",
  "totalresults",
  "totalitems",
  "totalelements",
  "totalrecords",
  "totalsize",
];
const TOTAL_PAGES = ["totalpages", "pagecount", "numpages", "pagetotal", "lastpage", "pages"];
const NEXT_LINK = [
  ...["nextlink", "odatanextlink", "nextpageurl", "nexturl", "nexturi", "nexthref", "nextpagelink", "next"],
  "nextpage",
];
const DEEPEST = 3;
/** Properties that are looked at: a document may declare any number. */
const MOST_PROPERTIES = 2_000;

/** Takes case and punctuation out of a name, so that `next_cursor` and `nextCursor` are one. */
export function plainName(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, "").toLowerCase();
}

interface Found {
  readonly name: string;
  readonly path: DataPath;
  readonly view: SchemaView;
  readonly types: ReadonlySet<string>;
}

/** Looks at the schema of a page. */
export function readListShape(schema: JsonSchema | undefined): ListShape {
  const page = viewSchema(schema);
  const found = collect(page);
  const items = findItems(page, found);
  const pick = (names: readonly string[], type: string) => pickByName(found, names, type)?.path;
  return {
    items: items?.path,
    hasIds: items?.view.items().has("id") ?? false,
    hasMore: pick(MORE, "boolean"),
    isLast: pick(LAST, "boolean"),
    total: pick(TOTAL, "integer") ?? pick(TOTAL, "number"),
    totalPages: pick(TOTAL_PAGES, "integer") ?? pick(TOTAL_PAGES, "number"),
    nextPage: pick(["nextpage", "next"], "integer") ?? pick(["nextpage", "next"], "number"),
    nextLink: findNextLink(found),
    scalars: scalarsOf(found),
  };
}

/** Nearest to the top first. */
function collect(page: SchemaView): readonly Found[] {
  const found: Found[] = [];
  let level: Pick<Found, "view" | "path">[] = [{ view: page, path: [] }];
  for (let depth = 0; depth < DEEPEST && level.length > 0; depth++) {
    const below: typeof level = [];
    for (const { view: around, path } of level) {
      for (const key of around.names) {
        if (found.length === MOST_PROPERTIES) return found;
        const view = around.member(key);
        const entry = { name: plainName(key), path: [...path, key], view, types: view.types };
        found.push(entry);
        if (CONTAINERS.has(entry.name) && !entry.types.has("array")) below.push(entry);
      }
    }
    level = below;
  }
  return found;
}

function pickByName(found: readonly Found[], names: readonly string[], type: string): Found | undefined {
  for (const name of names) {
    const match = found.find((entry) => entry.name === name && entry.types.has(type));
    if (match !== undefined) return match;
  }
  return undefined;
}

/** The data itself, the one list there is nearest to the top, or of several the one with a name that lists have. */
function findItems(page: SchemaView, found: readonly Found[]): Pick<Found, "path" | "view"> | undefined {
  if (page.types.has("array")) return { path: [], view: page };
  for (let depth = 1; depth <= DEEPEST; depth++) {
    const lists = found.filter((entry) => entry.path.length === depth && entry.types.has("array"));
    if (lists.length === 1) return lists[0];
    const named = pickByName(lists, ITEM_NAMES, "array");
    if (named !== undefined) return named;
    if (lists.length > 1) return undefined;
  }
  return undefined;
}

/** An address says so with its name or its format: `next` alone may be a cursor, which is told apart when it comes. */
function findNextLink(found: readonly Found[]): DataPath | undefined {
  for (const name of NEXT_LINK) {
    const match = found.find((entry) => entry.name === name && entry.types.has("string"));
    if (match !== undefined) return match.path;
  }
  return found.find(({ name, path, types }) => {
    return name === "href" && types.has("string") && plainName(path.at(-2) ?? "") === "next";
  })?.path;
}

function scalarsOf(found: readonly Found[]): ReadonlyMap<string, DataPath> {
  const scalars = new Map<string, DataPath>();
  for (const { name, path, types } of found) {
    const isScalar = types.size === 0 || types.has("string") || types.has("integer") || types.has("number");
    if (!isScalar || types.has("object") || types.has("array")) continue;
    if (!scalars.has(name)) scalars.set(name, path);
    const within = `${plainName(path.at(-2) ?? "")}/${name}`;
    if (!scalars.has(within)) scalars.set(within, path);
  }
  return scalars;
}

/** What is known of the page after one: how to ask for it, or that there is none. */
export type NextPage =
  | { readonly isLast: true }
  | {
      readonly isLast: false;
      /** Tells it from other pages, for people and programs that keep it. */
      readonly token: string;
      readonly input: unknown;
    }
  | {
      readonly isLast: false;
      /** What asks for it in the query, none of which the document declares: there is no input for it. */
      readonly undeclared: readonly string[];
    };

/** Looks for the page after one; gives nothing where it cannot tell. Never throws, whatever came back. */
export type PageFinder = (envelope: ResponseEnvelope, input: unknown) => NextPage | undefined;

/** There is no page after this one. */
export const LAST_PAGE: NextPage = { isLast: true };

/** Gives the value at a path; nothing where there is none, or where anything but plain objects and lists is on the way. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    const isContainer = isPlainObject(current) || Array.isArray(current);
    if (!isContainer || !Object.hasOwn(current as object, key)) return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

/** Copies an input with another value at a path; what is not an object on the way becomes one. */
export function withValueAt(input: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const copy: Record<string, unknown> = {};
  if (isPlainObject(input)) for (const name of Object.keys(input)) setOwn(copy, name, input[name]);
  setOwn(copy, key, withValueAt(Object.hasOwn(copy, key) ? copy[key] : undefined, rest, value));
  return copy;
}

/** Reads a count that came from outside: a number, or digits. */
export function toCount(value: unknown): number | undefined {
  const number = typeof value === "string" && /^[0-9]{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** The longest cursor that is handed on. */
const CURSOR_LENGTH = 8_192;

/** Reads a cursor that came from outside; an empty one, or nought, is none. */
export function toCursor(value: unknown): string | number | undefined {
  if (typeof value === "string") return value !== "" && value.length <= CURSOR_LENGTH ? value : undefined;
  return typeof value === "number" && Number.isFinite(value) && value !== 0 ? value : undefined;
}
