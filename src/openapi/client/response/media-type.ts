/** How a body is read: as a value, as text, as bytes, or piece by piece. */
export type BodyKind = "json" | "wire" | "text" | "bytes" | "events" | "lines" | "records";

/** What a `content-type` says. */
export interface MediaType {
  /** In lower case and without parameters; `""` where there is none. */
  readonly type: string;
  /** In lower case. */
  readonly charset: string | undefined;
  readonly kind: BodyKind;
}

/** JSON that says what plain JSON cannot hold, written and read by Waybill alone. */
const WIRE_MEDIA_TYPE = "application/vnd.waybill.data+json";

const TYPE = /^[!#$&^_.+*a-z0-9-]{1,127}\/[!#$&^_.+*a-z0-9-]{1,127}$/;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([A-Za-z0-9_.:+-]{1,64})/i;
const LONGEST = 1_024;
const MOST_KEPT = 256;

const KINDS: ReadonlyMap<string, BodyKind> = new Map<string, BodyKind>([
  [WIRE_MEDIA_TYPE, "wire"],
  ["application/json", "json"],
  ["application/x-json", "json"],
  ["text/json", "json"],
  ["text/x-json", "json"],
  ["text/event-stream", "events"],
  ["application/ndjson", "lines"],
  ["application/x-ndjson", "lines"],
  ["application/jsonl", "lines"],
  ["application/x-jsonl", "lines"],
  ["application/jsonlines", "lines"],
  ["application/x-jsonlines", "lines"],
  ["application/json-lines", "lines"],
  ["application/x-json-stream", "lines"],
  ["application/stream+json", "lines"],
  ["text/ndjson", "lines"],
  ["text/jsonl", "lines"],
  ["application/json-seq", "records"],
  ["application/xml", "text"],
  ["application/x-www-form-urlencoded", "text"],
  ["application/javascript", "text"],
  ["application/x-javascript", "text"],
  ["application/ecmascript", "text"],
  ["application/yaml", "text"],
  ["application/x-yaml", "text"],
  ["application/vnd.yaml", "text"],
  ["application/toml", "text"],
  ["application/csv", "text"],
  ["application/graphql", "text"],
  ["application/sql", "text"],
  ["application/jwt", "text"],
  ["application/jose", "text"],
  ["application/x-pem-file", "text"],
]);

const NONE: MediaType = { type: "", charset: undefined, kind: "bytes" };
const known = new Map<string, MediaType>();

/** Reads a media type, with or without parameters; what is none counts as bytes. */
export function parseMediaType(value: string): MediaType {
  const kept = known.get(value);
  if (kept !== undefined) return kept;
  const parsed = parse(value);
  // Servers repeat themselves; one that does not is not remembered for ever.
  if (known.size < MOST_KEPT && value.length <= LONGEST) known.set(value, parsed);
  return parsed;
}

function parse(value: string): MediaType {
  if (value.length > LONGEST) return NONE;
  const end = value.indexOf(";");
  const type = (end === -1 ? value : value.slice(0, end)).trim().toLowerCase();
  if (!TYPE.test(type)) return NONE;
  return { type, charset: CHARSET.exec(value)?.[1]?.toLowerCase(), kind: kindOf(type) };
}

function kindOf(type: string): BodyKind {
  const exact = KINDS.get(type);
  if (exact !== undefined) return exact;
  if (type.endsWith("+json-seq")) return "records";
  if (type.endsWith("+json")) return "json";
  return type.startsWith("text/") || type.endsWith("+xml") || type.endsWith("+yaml") ? "text" : "bytes";
}

/** Tells whether a body of this kind is a sequence of items. */
export function isSequence(kind: BodyKind): boolean {
  return kind === "events" || kind === "lines" || kind === "records";
}
