import type { MCPContentBlock, MCPResourceLinkBlock } from "../envelope/content-block.ts";
import { isContentBlock } from "../envelope/envelope.ts";
import type { PageFacts, ResultFacts, SaidFacts } from "../envelope/response-meta.ts";
import { toErrorDetails } from "../errors/error-details.ts";
import { isPlainJson, isPlainObject, isValueTooDeep, ownMember, toJsonText } from "../json/json-value.ts";
import { describeValue } from "../options/check-options.ts";
import { safeLine, safeText } from "../text/clean-text.ts";
import { didYouMean, nearestName } from "../text/nearest-name.ts";
import type { UpgradeHint } from "./tool-result.ts";

/** Bounds on what an operation says about its result; one over is a `TypeError` where the result is made. */
export const SAID_LIMITS = {
  /** Characters of the summary, which is one line; hosts render up to 80 well. */
  summary: 500,
  /** Characters of an error's message. */
  message: 8_192,
  /** Characters of one detail, next step, suggested action, or text of an upgrade hint. */
  line: 8_192,
  /** Characters of the Markdown. */
  markdown: 1_000_000,
  /** Characters of a code, a category, a capability, a name of a tool. */
  name: 200,
  /** Entries of one list: details, next steps, links, blocks, capabilities, upgrade hints. */
  entries: 1_000,
} as const;

/** A resource to read on in; `type` may be left out. */
export type ResultLink = Omit<MCPResourceLinkBlock, "type"> & { readonly type?: "resource_link" };

/** What both results and errors may say beyond their data. */
interface SaidAlways {
  /** One line for people. */
  readonly summary?: string | undefined;
  /** What the agent may do now, a line each. */
  readonly nextSteps?: readonly string[] | undefined;
  /** A text for people and models, in place of the data's JSON where a host shows text alone. */
  readonly markdown?: string | undefined;
  /** Further blocks for people, such as images; they follow the Markdown. */
  readonly content?: readonly MCPContentBlock[] | undefined;
  /** Where more can be read; written last. */
  readonly links?: readonly ResultLink[] | undefined;
  /** The reply shows less than there is. */
  readonly truncated?: boolean | undefined;
  readonly tokenUsage?: { readonly inline?: number; readonly total?: number } | undefined;
  readonly rateLimit?: { readonly remaining?: number; readonly resetSeconds?: number } | undefined;
  /** What this invocation supports. */
  readonly capabilities?: readonly string[] | undefined;
  /** What a higher plan would add. */
  readonly upgradeHints?: readonly UpgradeHint[] | undefined;
  /** Fields for `_meta` of an MCP result; the keys of Waybill are refused. */
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

/** What `result` may be told beyond its data; everything is optional. */
export interface ResultSaid extends SaidAlways {
  /** @default "ok" */
  readonly status?: "ok" | "info" | "warn" | undefined;
  /** Lines for people. */
  readonly details?: string | readonly string[] | undefined;
  /** Where the result stands in a paged list. */
  readonly page?: PageFacts | undefined;
}

/** What `toolError` may be told beyond its data; everything is optional. */
export interface ToolErrorSaid extends SaidAlways {
  /** A code for programs, best one the operation declares. */
  readonly code?: string | undefined;
  /** A sentence for people. @default the summary, or what is known about the code */
  readonly message?: string | undefined;
  /** One of the nine of the tool envelope, or one of your own. @default that of the code */
  readonly category?: string | undefined;
  /** Strings are lines for people; an object is facts for programs, copied into bounded JSON. */
  readonly details?: string | readonly string[] | Readonly<Record<string, unknown>> | undefined;
  /** Whether trying again is worth it, with the same input or a better one. @default what is known about the code */
  readonly recoverable?: boolean | undefined;
  /** How to resolve the error. */
  readonly suggestedAction?: string | undefined;
  /** The tool to call next. */
  readonly nextTool?: string | undefined;
  /** @default the operation that returns it */
  readonly operationId?: string | undefined;
}

type Written<T> = { -readonly [K in keyof T]: T[K] };
type Facts = Written<ResultFacts>;
type Said = Written<SaidFacts>;
type Fields = Readonly<Record<string, unknown>>;

/** Checks what `result` was told and gives it as facts; a field that is wrong is a `TypeError` that names it. */
export function resultFacts(given: ResultSaid): ResultFacts {
  const said = fieldsOf("result()", given, RESULT_FIELDS);
  const facts: Facts = {};
  const kept: Said = {};
  for (const name of Object.keys(said) as (keyof ResultSaid)[]) {
    const value = said[name];
    if (value === undefined) continue;
    if (name === "status") kept.status = oneOf(name, value, ["ok", "info", "warn"]);
    else if (name === "details") kept.details = linesOf(name, value);
    else if (name === "page") facts.page = pageOf(value);
    else readCommon(kept, name, value);
  }
  return withSaid(facts, kept, said);
}

/** The same for `toolError`, with the operation it names: none is `""`. */
export function errorFacts(given: ToolErrorSaid): {
  readonly facts: ResultFacts;
  readonly operationId: string;
} {
  const said = fieldsOf("toolError()", given, ERROR_FIELDS);
  const facts: Facts = {};
  const kept: Said = {};
  let operationId = "";
  for (const name of Object.keys(said) as (keyof ToolErrorSaid)[]) {
    const value = said[name];
    if (value === undefined) continue;
    switch (name) {
      case "code": {
        const code = lineOf(name, value, SAID_LIMITS.name);
        if (isSaidCode(code)) facts.code = code;
        break;
      }
      case "message":
        facts.message = clean(textOf(name, value, SAID_LIMITS.message));
        break;
      case "details":
        if (typeof value === "string" || isList(name, value)) kept.details = linesOf(name, value);
        else facts.details = errorDetails(value);
        break;
      case "category":
      case "nextTool":
        kept[name] = lineOf(name, value, SAID_LIMITS.name);
        break;
      case "suggestedAction":
        kept.suggestedAction = clean(textOf(name, value, SAID_LIMITS.line));
        break;
      case "recoverable":
        kept.recoverable = flagOf(name, value);
        break;
      case "operationId":
        operationId = textOf(name, value, SAID_LIMITS.line);
        break;
      default:
        readCommon(kept, name, value);
    }
  }
  return { facts: withSaid(facts, kept, said), operationId };
}

/** Tells whether a value from another process may be the code of a tool error: one clean line, as `toolError` gives it. */
export function isSaidCode(value: unknown): value is string {
  if (typeof value !== "string" || value.length > SAID_LIMITS.name || value.trim() === "") return false;
  return PLAIN.test(value) || safeLine(value) === value;
}

const COMMON_FIELDS = [
  ...(["summary", "nextSteps", "markdown", "content", "links", "truncated", "tokenUsage"] as const),
  ...(["rateLimit", "capabilities", "upgradeHints", "_meta"] as const),
] as const satisfies readonly (keyof SaidAlways)[];
const RESULT_FIELDS = [...COMMON_FIELDS, "status", "details", "page"] as const;
const ERROR_FIELDS = [
  ...COMMON_FIELDS,
  ...(["code", "message", "category", "details", "recoverable", "suggestedAction", "nextTool"] as const),
  "operationId",
] as const;

function readCommon(kept: Said, name: keyof SaidAlways, value: unknown): void {
  switch (name) {
    case "summary": {
      const line = lineOf(name, value, SAID_LIMITS.summary);
      // One without a word is none: each format has its own for a result that says nothing.
      if (line.trim() !== "") kept.summary = line;
      break;
    }
    case "nextSteps":
      kept.nextSteps = listOf(name, value, (step, at) => lineOf(at, step, SAID_LIMITS.line));
      break;
    case "truncated":
      kept.truncated = flagOf(name, value);
      break;
    case "tokenUsage":
      kept.tokenUsage = countsOf(name, value, ["inline", "total"]);
      break;
    case "rateLimit":
      kept.rateLimit = countsOf(name, value, ["remaining", "resetSeconds"]);
      break;
    case "capabilities":
      kept.capabilities = listOf(name, value, (entry, at) => lineOf(at, entry, SAID_LIMITS.name));
      break;
    case "upgradeHints":
      kept.upgradeHints = listOf(name, value, hintOf);
      break;
    case "_meta":
      kept._meta = metaOf(value);
      break;
    case "markdown":
    case "content":
    case "links":
      // Read together, in the order they are shown.
      break;
  }
}

function withSaid(facts: Facts, kept: Said, said: Fields): ResultFacts {
  const content = contentOf(said);
  if (content.length > 0) kept.content = content;
  for (const _ in kept) {
    facts.said = kept;
    break;
  }
  return facts;
}

function contentOf(said: Fields): readonly MCPContentBlock[] {
  const [markdown, content, links] = [
    ownMember(said, "markdown"),
    ownMember(said, "content"),
    ownMember(said, "links"),
  ];
  if (markdown === undefined && content === undefined && links === undefined) return [];
  const text = markdown === undefined ? "" : textOf("markdown", markdown, SAID_LIMITS.markdown);
  return [
    ...(text === "" ? [] : [{ type: "text", text } as const]),
    ...(content === undefined ? [] : listOf("content", content, blockOf)),
    ...(links === undefined ? [] : listOf("links", links, linkOf)),
  ];
}

// Blocks, links and `_meta` are looked at as they will be sent: what is said about itself (`toJSON`) may be anything.

function blockOf(given: unknown, at: string): MCPContentBlock {
  const block = jsonOf(at, membersOf(at, given));
  if (isContentBlock(block)) return block;
  throw new TypeError(`${at} must be a content block: text, image, audio, resource or resource_link.`);
}

function linkOf(given: unknown, at: string): MCPContentBlock {
  const members = membersOf(at, given);
  if (members !== undefined) members["type"] = ownMember(members, "type") ?? "resource_link";
  const link = jsonOf(at, members);
  if (isContentBlock(link) && link.type === "resource_link") return link;
  throw new TypeError(`${at} must be a link: { uri, name }, both texts.`);
}

function pageOf(given: unknown): PageFacts {
  const page = fieldsOf("page", given, ["next", "input"]);
  const [next, input] = [ownMember(page, "next"), ownMember(page, "input")];
  return {
    ...(next !== undefined && { next: textOf("page.next", next, Number.POSITIVE_INFINITY) }),
    ...(input !== undefined && { input: jsonOf("page.input", input) }),
  };
}

function errorDetails(given: unknown): unknown {
  // Looked at once it is copied: what is said about itself (`toJSON`) is taken at its word.
  const details = membersOf("details", given) && toErrorDetails(given);
  if (!isPlainObject(details)) throw new TypeError("details must be a text, a list of texts, or an object.");
  if (!Object.hasOwn(details, "said")) return details;
  throw new TypeError("details.said is the place of a source's own words; choose another name.");
}

function metaOf(given: unknown): Fields {
  const meta = jsonOf("_meta", membersOf("_meta", given));
  if (!isPlainObject(meta)) throw new TypeError(`_meta must be an object; it is ${describeValue(given)}.`);
  const ours = Object.keys(meta).find((key) => key.startsWith("dev.waybill/"));
  if (ours === undefined) return meta;
  throw new TypeError(`_meta must not hold ${quoted(ours)}: that key is Waybill's.`);
}

function hintOf(given: unknown, at: string): UpgradeHint {
  const hint = fieldsOf(at, given, ["feature", "tier", "reason"]);
  const field = (name: string): string => lineOf(`${at}.${name}`, ownMember(hint, name), SAID_LIMITS.line);
  return { feature: field("feature"), tier: field("tier"), reason: field("reason") };
}

function countsOf<N extends string>(
  at: string,
  given: unknown,
  known: readonly N[],
): { readonly [K in N]?: number } {
  const counts = fieldsOf(at, given, known);
  const kept: { [K in N]?: number } = {};
  for (const name of Object.keys(counts) as N[]) {
    const count = counts[name];
    if (count === undefined) continue;
    if (typeof count !== "number" || !Number.isFinite(count)) {
      throw new TypeError(`${at}.${name} must be a number; it is ${describeValue(count)}.`);
    }
    kept[name] = count;
  }
  return kept;
}

function linesOf(at: string, value: unknown): readonly string[] {
  if (typeof value === "string") return [clean(textOf(at, value, SAID_LIMITS.line))];
  return listOf(at, value, (line, place) => clean(textOf(place, line, SAID_LIMITS.line)));
}

/** By index, not with a method, which a hostile list can bring along; a hole is refused like any other entry. */
function listOf<T>(at: string, value: unknown, read: (entry: unknown, at: string) => T): readonly T[] {
  if (!isList(at, value)) throw new TypeError(`${at} must be a list; it is ${describeValue(value)}.`);
  const length = reading(at, () => value.length);
  if (length > SAID_LIMITS.entries) throw tooLong(at, `${SAID_LIMITS.entries} entries`);
  const entries: T[] = [];
  for (let i = 0; i < length; i++) entries.push(read(entryOf(at, value, i), `${at}[${i}]`));
  return entries;
}

function entryOf(at: string, list: readonly unknown[], index: number): unknown {
  try {
    return list[index];
  } catch (cause) {
    throw unreadable(`${at}[${index}]`, cause);
  }
}

function isList(at: string, value: unknown): value is readonly unknown[] {
  return reading(at, () => Array.isArray(value));
}

/**
 * The fields of an object, read once. One that is not known is refused, because what it says would be lost in silence. `at` is where the
 * object was found, and nothing for what an author says as a whole.
 */
function fieldsOf(of: string, given: unknown, known: readonly string[]): Fields {
  // What a function is told as a whole has no place within it.
  const at = of.endsWith("()") ? "" : of;
  const fields = membersOf(at, given, of);
  if (fields === undefined) {
    if (at !== "") {
      const wanted = known.join(", ");
      throw new TypeError(`${at} must be an object with any of: ${wanted}; it is ${describeValue(given)}.`);
    }
    throw new TypeError(`What ${of} says beyond its data must be a plain object.`);
  }
  for (const name of Object.keys(fields)) if (!known.includes(name)) throw unknownField(of, name, known);
  return fields;
}

function unknownField(of: string, name: string, known: readonly string[]): TypeError {
  const hint = didYouMean(nearestName(name, known), `; it takes ${known.join(", ")}.`);
  return new TypeError(`${of} does not take ${quoted(name)}${hint}`);
}

/** The members of a plain object in a copy: a getter is asked once, and what it throws is named by its place. */
function membersOf(at: string, value: unknown, of = at): Record<string, unknown> | undefined {
  try {
    return isPlainObject(value) ? { ...value } : undefined;
  } catch (cause) {
    const name = unreadableIn(value as Fields);
    const place =
      name === undefined ? (at === "" ? `What ${of} says` : at) : at === "" ? name : `${at}.${name}`;
    throw unreadable(place, cause);
  }
}

function unreadableIn(value: Fields): string | undefined {
  let reached: string | undefined;
  try {
    for (const name of Object.keys(value)) {
      reached = name;
      void value[name];
    }
  } catch {
    return reached;
  }
  return undefined;
}

function reading<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw unreadable(at, cause);
  }
}

function unreadable(at: string, cause: unknown): TypeError {
  return new TypeError(`${at} cannot be read.`, { cause });
}

/** What JSON can hold: the value itself where it is that already, else as JSON writes it; nothing stays nothing. */
function jsonOf(at: string, value: unknown): unknown {
  if (value === undefined) return undefined;
  try {
    if (isFlat(value)) return value;
    if (isPlainJson(value) && !isValueTooDeep(value, Number.POSITIVE_INFINITY)) return value;
    return JSON.parse(toJsonText(value));
  } catch (cause) {
    throw new TypeError(`${at} must be what JSON can hold.`, { cause });
  }
}

/** Most blocks are: an object of texts. */
function isFlat(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  for (const key in value)
    if (typeof value[key] !== "string" && typeof value[key] !== "boolean") return false;
  return true;
}

function lineOf(at: string, value: unknown, most: number): string {
  const text = textOf(at, value, most);
  return PLAIN.test(text) ? text : safeLine(text, SAID_LIMITS.line);
}

function textOf(at: string, value: unknown, most: number): string {
  if (typeof value !== "string") throw new TypeError(`${at} must be a text; it is ${describeValue(value)}.`);
  if (value.length > most) throw tooLong(at, `${most} characters`);
  return value;
}

function flagOf(at: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new TypeError(`${at} must be true or false; it is ${describeValue(value)}.`);
}

function oneOf<T extends string>(at: string, value: unknown, known: readonly T[]): T {
  if (known.includes(value as T)) return value as T;
  const hint = at === "status" && value === "error" ? "; return toolError() for an error" : "";
  throw new TypeError(`${at} must be ${known.map((word) => `"${word}"`).join(", ")}${hint}.`);
}

function tooLong(at: string, most: string): TypeError {
  return new TypeError(`${at} may have at most ${most}.`);
}

function quoted(name: string): string {
  return JSON.stringify(safeLine(name.slice(0, 80)));
}

const PLAIN = /^[\x20-\x7e]*$/;

function clean(text: string): string {
  return PLAIN.test(text) ? text : safeText(text);
}
