/** JSON in which what JSON cannot hold is written in the documented form of the wire; written and read by Waybill alone. */
export const DATA_TYPE = "application/vnd.waybill.data+json";
/** The media type of a whole envelope. */
export const ENVELOPE_TYPE = "application/vnd.waybill.envelope+json";

/** How bodies of a media type are written. */
export type MediaKind =
  | "json"
  | "events"
  | "lines"
  | "records"
  | "form"
  | "multipart"
  | "xml"
  | "text"
  | "range"
  | "bytes";

/** How a body is read: as a value, as text, as bytes, or piece by piece. */
export type BodyKind = "json" | "wire" | "text" | "bytes" | "events" | "lines" | "records";

const LINES = new Set([
  "application/ndjson",
  "application/x-ndjson",
  "application/jsonl",
  "application/x-jsonl",
  "application/jsonlines",
  "application/x-jsonlines",
  "application/json-lines",
  "application/x-json-stream",
  "application/stream+json",
  "text/ndjson",
  "text/jsonl",
]);

/** Text although their type does not say so. */
const TEXTS = new Set([
  "application/javascript",
  "application/x-javascript",
  "application/ecmascript",
  "application/yaml",
  "application/x-yaml",
  "application/vnd.yaml",
  "application/toml",
  "application/csv",
  "application/graphql",
  "application/sql",
  "application/jwt",
  "application/jose",
  "application/x-pem-file",
]);

/** Tells how bodies of a type (in lower case, without parameters) are written; what is not known is bytes. */
export function mediaKindOf(essence: string): MediaKind {
  if (essence.includes("*")) return essence === "text/*" ? "text" : "range";
  if (essence === "text/event-stream") return "events";
  if (LINES.has(essence)) return "lines";
  if (/^application\/json-seq$|\+json-seq$/.test(essence)) return "records";
  if (/^(?:application|text)\/(?:x-)?json$|\+json$/.test(essence)) return "json";
  if (essence === "application/x-www-form-urlencoded") return "form";
  if (essence.startsWith("multipart/")) return "multipart";
  if (/^(?:application|text)\/xml$|\+xml$/.test(essence)) return "xml";
  return essence.startsWith("text/") || essence.endsWith("+yaml") || TEXTS.has(essence) ? "text" : "bytes";
}

/** Tells whether a body of this kind is a sequence of items. */
export function isSequence(kind: MediaKind | BodyKind): boolean {
  return kind === "events" || kind === "lines" || kind === "records";
}

/** The media type without its parameters, in lower case, whatever it looks like. */
export function essenceOf(mediaType: string): string {
  return (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** What a `content-type` says. */
export interface MediaType {
  /** In lower case and without parameters; `""` where there is none. */
  readonly type: string;
  /** In lower case. */
  readonly charset: string | undefined;
  readonly kind: BodyKind;
}

const TYPE = /^[!#$&^_.+*a-z0-9-]{1,127}\/[!#$&^_.+*a-z0-9-]{1,127}$/;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([A-Za-z0-9_.:+-]{1,64})/i;
const LONGEST_READ = 1_024;
const MOST_KEPT = 256;

const NONE: MediaType = { type: "", charset: undefined, kind: "bytes" };
const known = new Map<string, MediaType>();

/** Reads what others call a media type, with or without parameters; what is none counts as bytes. */
export function parseMediaType(value: string): MediaType {
  const kept = known.get(value);
  if (kept !== undefined) return kept;
  const parsed = parse(value);
  // Servers repeat themselves; one that does not is not remembered for ever.
  if (known.size < MOST_KEPT && value.length <= LONGEST_READ) known.set(value, parsed);
  return parsed;
}

function parse(value: string): MediaType {
  if (value.length > LONGEST_READ) return NONE;
  const type = essenceOf(value);
  if (!TYPE.test(type)) return NONE;
  return { type, charset: CHARSET.exec(value)?.[1]?.toLowerCase(), kind: bodyKindOf(type) };
}

function bodyKindOf(type: string): BodyKind {
  if (type === DATA_TYPE) return "wire";
  const kind = mediaKindOf(type);
  switch (kind) {
    case "form":
    case "xml":
      return "text";
    case "multipart":
    case "range":
      return "bytes";
    default:
      return kind;
  }
}

/** A media type that can be sent, taken apart. */
export interface SendableType {
  /** Type and subtype, in lower case. */
  readonly essence: string;
  /** Each with its name in lower case and its value as written. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
const SENDABLE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|"[^"\\\\]*"))*$`);
const PARAMETER = new RegExp(`;[ \\t]*(${TOKEN})=(${TOKEN}|"[^"\\\\]*")`, "g");
const LONGEST_SENT = 255;

/** Reads a media type or a range of them that every server can read; anything else gives undefined. */
export function parseSendableType(text: string): SendableType | undefined {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST_SENT || !SENDABLE.test(trimmed) || !/^[\t -~]*$/.test(trimmed))
    return undefined;
  const found = [...trimmed.matchAll(PARAMETER)];
  const parameters = found.map(([, name = "", value = ""]) => [name.toLowerCase(), value] as const);
  return { essence: essenceOf(trimmed), parameters };
}

/** The same for what documents say: parameters that are none are left out, and what is not a type at all is bytes, or JSON by name. */
export function readDeclaredType(text: string): SendableType {
  const essence = /json/i.test(text) ? "application/json" : "application/octet-stream";
  return parseSendableType(text) ?? parseSendableType(essenceOf(text)) ?? { essence, parameters: [] };
}

/** Writes a media type without the parameters of those names. */
export function writeMediaType({ essence, parameters }: SendableType, without: readonly string[]): string {
  const kept = parameters.filter(([name]) => !without.includes(name));
  return [essence, ...kept.map(([name, value]) => `${name}=${value}`)].join("; ");
}
