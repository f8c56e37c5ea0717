import { parseJsonText, parseJsonTextOrNone } from "../../../core/json/json-text.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { BodyKind } from "../../media-types.ts";
import type { MediaPlan } from "../plan.ts";
import type { Frame } from "./frames.ts";
import { toItemSchema } from "./output-schema.ts";
import { type Definitions, propertiesOf, typesOf } from "./schema-view.ts";

/** Makes the data of a piece of a stream; throws where it is not the JSON it should be. */
export type ItemReader = (frame: Frame) => unknown;

/** What a schema says of text: it wants JSON, or the text itself, or does not say. */
type Wanted = "json" | "text" | "either";

const EVENT_FIELDS = new Set(["data", "event", "id", "retry", "comment"]);

/** Creates the reader of the items of one media type. */
export function createItemReader(
  media: MediaPlan | undefined,
  kind: BodyKind,
  definitions: Definitions,
): ItemReader {
  const schema = toItemSchema(media, definitions);
  if (kind === "events" && describesEvent(media?.itemSchema, definitions)) {
    const readData = readerOf(
      wantedBy(propertiesOf(media?.itemSchema, definitions).get("data"), definitions),
    );
    return (frame) => toEvent(frame, readData);
  }
  const wanted = wantedBy(schema, definitions);
  const isJson = kind === "lines" || kind === "records" || kind === "json" || kind === "wire";
  const read = isJson ? jsonReaderOf(wanted, kind) : readerOf(wanted);
  return ({ text }) => read(text);
}

/** An event as OpenAPI 3.2 describes it: an object of its fields. */
function describesEvent(schema: JsonSchema | undefined, definitions: Definitions): boolean {
  const names = [...propertiesOf(schema, definitions).keys()];
  return names.includes("data") && names.every((name) => EVENT_FIELDS.has(name));
}

function toEvent({ text, event, id }: Frame, readData: (text: string) => unknown): unknown {
  return { data: readData(text), ...(event !== undefined && { event }), ...(id !== undefined && { id }) };
}

function wantedBy(schema: JsonSchema | undefined, definitions: Definitions): Wanted {
  const types = typesOf(schema, definitions);
  if (types.size === 0) return "either";
  if (!types.has("string")) return "json";
  return [...types].every((type) => type === "string" || type === "null") ? "text" : "either";
}

function readerOf(wanted: Wanted): (text: string) => unknown {
  switch (wanted) {
    case "json":
      return parseJsonText;
    case "text":
      return (text) => text;
    case "either":
      return (text) => (/^\s*[{[]/.test(text) ? (parseJsonTextOrNone(text) ?? text) : withoutReturn(text));
  }
}

/** Lines and records are JSON whatever is said; where text is wanted of one that is no string, it is its own text. */
function jsonReaderOf(wanted: Wanted, kind: BodyKind): (text: string) => unknown {
  const parse = kind === "records" ? parseRecord : (text: string) => parseJsonText(text);
  if (wanted !== "text") return parse;
  return (text) => {
    const value = parseJsonTextOrNone(text);
    return typeof value === "string" ? value : text.trim();
  };
}

/** A number or a word that nothing ends may have been cut (RFC 7464, section 2.4). */
function parseRecord(text: string): unknown {
  if (!/[\s"}\]]$/.test(text)) throw new SyntaxError("The record was cut.");
  return parseJsonText(text);
}

/** Lines may end as on Windows. */
function withoutReturn(text: string): string {
  return text.endsWith("\r") ? text.slice(0, -1) : text;
}
