/** How a body of some media type is written. */
export type MediaKind = "json" | "form" | "multipart" | "text" | "stream" | "binary";

const STREAMS = new Set([
  "text/event-stream",
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonl",
  "application/x-jsonl",
  "application/jsonlines",
  "application/x-jsonlines",
  "application/json-lines",
  "application/json-seq",
  "application/stream+json",
  "application/x-json-stream",
]);
const TEXTS = /^(?:text\/.*|application\/(?:(?:.*\+)?(?:xml|yaml)|x-yaml|javascript|ecmascript|graphql))$/;

/** The media type without its parameters, in lower case. */
export function essence(mediaType: string): string {
  return (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Tells how a body of a media type is written. */
export function mediaKind(mediaType: string): MediaKind {
  const type = essence(mediaType);
  if (STREAMS.has(type) || type.endsWith("+json-seq")) return "stream";
  if (type === "application/json" || type === "text/json" || type.endsWith("+json")) return "json";
  if (type === "application/x-www-form-urlencoded") return "form";
  if (type.startsWith("multipart/")) return "multipart";
  return TEXTS.test(type) ? "text" : "binary";
}

const ORDER: readonly ((type: string) => boolean)[] = [
  (type) => type === "application/json",
  (type) => mediaKind(type) === "json",
  (type) => mediaKind(type) === "form",
  (type) => type === "multipart/form-data",
  (type) => type.startsWith("text/"),
];

/** Where a media type stands among those a body may have: less is better. */
export function mediaRank(mediaType: string): number {
  const type = essence(mediaType);
  const rank = ORDER.findIndex((test) => test(type));
  return rank === -1 ? ORDER.length : rank;
}
