/** What a schema says in place of a type that JSON Schema does not know; an empty one allows anything. */
const FOREIGN: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map([
  ...["float", "double", "decimal", "real", "numeric", "currency", "money"].map(entry("number")),
  ...["int", "int32", "int64", "long", "short", "bigint", "uint", "uint32", "uint64"].map(entry("integer")),
  ...["bool"].map(entry("boolean")),
  ...["str", "text", "char", "enum", "password", "html", "markdown", "base64", "byte", "id"].map(
    entry("string"),
  ),
  ...["date", "time", "uuid", "uri", "url", "email", "hostname"].map(named),
  ...["datetime", "date-time", "timestamp"].map(
    (name) => [name, { type: "string", format: "date-time" }] as const,
  ),
  ...["map", "dict", "hash", "struct", "record", "jsonobject"].map(entry("object")),
  ...["list", "collection"].map(entry("array")),
  ...["nil", "none", "void"].map(entry("null")),
  ...["file", "binary"].map((name) => [name, { contentMediaType: "application/octet-stream" }] as const),
]);

const KNOWN = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);

function entry(type: string): (name: string) => readonly [string, Record<string, unknown>] {
  return (name) => [name, { type }];
}

function named(format: string): readonly [string, Record<string, unknown>] {
  return [format, { type: "string", format }];
}

/** The keywords that say what `type` was meant to; `note` hears of what had to be mended. */
export function mendType(type: unknown, note: (sentence: string) => void): Record<string, unknown> {
  if (typeof type === "string" && KNOWN.has(type)) return { type };
  const names: readonly unknown[] = Array.isArray(type) ? type : [type];
  const types: string[] = [];
  let extra: Record<string, unknown> = {};
  for (const name of names) {
    if (typeof name === "string" && KNOWN.has(name)) {
      types.push(name);
      continue;
    }
    note(`A schema has the type ${JSON.stringify(name)}, which is none of JSON Schema's.`);
    const mended = typeof name === "string" ? mendName(name.toLowerCase()) : undefined;
    if (mended === undefined) return {};
    const { type: meant, ...rest } = mended;
    extra = { ...extra, ...rest };
    if (typeof meant !== "string") return extra;
    types.push(meant);
  }
  const distinct = [...new Set(types)];
  if (distinct.length === 0) return extra;
  return { type: distinct.length === 1 ? distinct[0] : distinct, ...extra };
}

function mendName(name: string): Readonly<Record<string, unknown>> | undefined {
  return KNOWN.has(name) ? { type: name } : FOREIGN.get(name);
}
