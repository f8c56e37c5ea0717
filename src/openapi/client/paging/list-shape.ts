import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { type Definitions, itemsOf, propertiesOf, typesOf } from "../response/schema-view.ts";

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
  readonly schema: JsonSchema;
  readonly types: ReadonlySet<string>;
}

/** Looks at the schema of a page. */
export function readListShape(schema: JsonSchema | undefined): ListShape {
  const definitions = isObject(schema) && isObject(schema["$defs"]) ? (schema["$defs"] as Definitions) : {};
  const found = collect(schema, definitions);
  const items = findItems(schema, found, definitions);
  const pick = (names: readonly string[], type: string) => pickByName(found, names, type)?.path;
  return {
    items: items?.path,
    hasIds: propertiesOf(itemsOf(items?.schema, definitions), definitions).has("id"),
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
function collect(schema: JsonSchema | undefined, definitions: Definitions): readonly Found[] {
  const found: Found[] = [];
  let level: { readonly schema: JsonSchema | undefined; readonly path: DataPath }[] = [{ schema, path: [] }];
  for (let depth = 0; depth < DEEPEST && level.length > 0; depth++) {
    const below: typeof level = [];
    for (const { schema: around, path } of level) {
      for (const [key, property] of propertiesOf(around, definitions)) {
        if (found.length === MOST_PROPERTIES) return found;
        const entry = { name: plainName(key), path: [...path, key], schema: property };
        const types = typesOf(property, definitions);
        found.push({ ...entry, types });
        if (CONTAINERS.has(entry.name) && !types.has("array")) below.push(entry);
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
function findItems(
  schema: JsonSchema | undefined,
  found: readonly Found[],
  definitions: Definitions,
): Pick<Found, "path" | "schema"> | undefined {
  if (schema !== undefined && typesOf(schema, definitions).has("array")) return { path: [], schema };
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
