/** How bodies of a media type are written. */
export type MediaKind = "json" | "lines" | "form" | "multipart" | "xml" | "text" | "binary" | "range";

/** A media type, taken apart. */
export interface MediaType {
  /** Type and subtype, in lower case. */
  readonly essence: string;
  /** Each with its name in lower case and its value as written. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|"[^"\\\\]*"))*$`);
const PARAMETER = new RegExp(`;[ \\t]*(${TOKEN})=(${TOKEN}|"[^"\\\\]*")`, "g");

/** Longest media type that is looked at. */
const LONGEST = 255;

const LINES = new Set([
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonl",
  "application/x-jsonlines",
  "application/json-lines",
  "application/json-seq",
]);

/** Text although their type does not say so. */
const TEXTS = new Set([
  "application/graphql",
  "application/javascript",
  "application/yaml",
  "application/x-yaml",
  "application/sql",
  "application/toml",
]);

/** Reads a media type or a range of them; anything else gives undefined. */
export function parseMediaType(text: string): MediaType | undefined {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST || !MEDIA_TYPE.test(trimmed) || !/^[\t -~]*$/.test(trimmed)) return undefined;
  const [first = ""] = trimmed.split(";", 1);
  const found = [...trimmed.matchAll(PARAMETER)];
  const parameters = found.map(([, name = "", value = ""]) => [name.toLowerCase(), value] as const);
  return { essence: first.trim().toLowerCase(), parameters };
}

/** The same for what documents say: parameters that are none are left out, and what is not a type at all is bytes, or JSON by name. */
export function readDeclaredType(text: string): MediaType {
  const parsed = parseMediaType(text);
  if (parsed !== undefined) return parsed;
  const begun = parseMediaType(text.split(";", 1)[0] ?? "");
  const essence = /json/i.test(text) ? "application/json" : "application/octet-stream";
  return begun ?? { essence, parameters: [] };
}

/** Writes a media type without the parameters of those names. */
export function writeMediaType({ essence, parameters }: MediaType, without: readonly string[]): string {
  const kept = parameters.filter(([name]) => !without.includes(name));
  return [essence, ...kept.map(([name, value]) => `${name}=${value}`)].join("; ");
}

/** Tells how bodies of a type are written; what is not known is bytes. */
export function mediaKindOf(essence: string): MediaKind {
  if (essence.includes("*")) return essence === "text/*" ? "text" : "range";
  if (/^(?:application|text)\/(?:x-)?json$|\+json$/.test(essence)) return "json";
  if (LINES.has(essence)) return "lines";
  if (essence === "application/x-www-form-urlencoded") return "form";
  if (essence.startsWith("multipart/")) return "multipart";
  if (/^(?:application|text)\/xml$|\+xml$/.test(essence)) return "xml";
  return essence.startsWith("text/") || TEXTS.has(essence) ? "text" : "binary";
}
