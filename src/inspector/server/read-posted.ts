import { countOpenings, isPlainObject, JsonTextError, parseJsonText } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { HttpRequest } from "../../http/exchange.ts";
import type { CompleteRequest, PromptRequest, ResourceRequest, RunRequest } from "../protocol.ts";
import { badRequest } from "./answers.ts";
import { MOST_ID_CHARACTERS } from "./inspector-limits.ts";

/** What a page posted: an object, of which nothing else is known. */
export type Posted = Readonly<Record<string, unknown>>;

const JSON_TYPE = /^application\/json(?:\s*;|$)/i;

/** Takes what a page posted, unread; only JSON, which no form of another page can send. */
export async function readBody(request: HttpRequest, mostBytes: number): Promise<Uint8Array> {
  if (!JSON_TYPE.test(request.header("content-type") ?? "")) {
    throw badRequest('Send JSON, with the header "content-type: application/json".', 415);
  }
  return await request.body(mostBytes);
}

/** Reads what a page posted; more values than are allowed are not even read. */
export function parsePosted(bytes: Uint8Array, mostValues = Number.POSITIVE_INFINITY): Posted {
  const value = parsed(bytes, mostValues);
  if (!isPlainObject(value)) throw badRequest("The request must be a JSON object.");
  return value;
}

function parsed(bytes: Uint8Array, mostValues: number): unknown {
  const text = decoded(bytes);
  if (mostValues < bytes.length && countJsonValues(text, mostValues) > mostValues) {
    const most = mostValues.toLocaleString("en");
    throw badRequest(`The input holds more values than the ${most} that are taken from a page.`, 413);
  }
  try {
    return parseJsonText(text, countOpenings(bytes));
  } catch (thrown) {
    throw thrown instanceof JsonTextError ? badRequest(thrown.message) : thrown;
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badRequest("The request is not UTF-8.");
  }
}

/** Gives a member of what is asked that must be text. */
export function textIn<Ask>(posted: Posted, name: keyof Ask & string): string {
  const value = Object.hasOwn(posted, name) ? posted[name] : undefined;
  if (typeof value !== "string") throw badRequest(`"${name}" must be a text.`);
  return value;
}

/** The same for the id of an operation, which is remembered with the call. */
export function idIn<Ask>(posted: Posted, name: keyof Ask & string): string {
  const id = textIn<Ask>(posted, name);
  if (id.length > MOST_ID_CHARACTERS)
    throw badRequest(`"${name}" must have at most ${MOST_ID_CHARACTERS} characters.`);
  return id;
}

/** The longest delay of timers. */
const MOST_MS = 2 ** 31 - 1;

const LEAST_PAGE_CHARACTERS = 16;

/** Reads what is to be called. */
export function readRunRequest(posted: Posted): RunRequest {
  const operation = idIn<RunRequest>(posted, "operation");
  const { timeoutMs } = posted;
  const isTime = typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= MOST_MS;
  if (timeoutMs !== undefined && !isTime) throw badRequest('"timeoutMs" must be a number of milliseconds.');
  return {
    operation,
    ...(Object.hasOwn(posted, "input") && { input: posted["input"] }),
    ...(isTime && { timeoutMs }),
    ...(Object.hasOwn(posted, "page") && { page: pageIn(posted) }),
  };
}

/** What tells one page from all others must not be what another would come up with. */
function pageIn(posted: Posted): string {
  const page = idIn<RunRequest>(posted, "page");
  if (page.length < LEAST_PAGE_CHARACTERS)
    throw badRequest(`"page" must have at least ${LEAST_PAGE_CHARACTERS} characters, chosen at random.`);
  return page;
}

const MOST_ORIGIN = 300;

/** The origin that a page is at; nothing else of what it says. */
export function originOf(text: string): string {
  const url = text.length <= MOST_ORIGIN ? parseUrl(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw badRequest('"origin" must be that of the page.');
  return url.origin;
}

/** Reads which resource is meant. */
export function resourceIn(posted: Posted): ResourceRequest {
  return { source: textIn<ResourceRequest>(posted, "source"), uri: textIn<ResourceRequest>(posted, "uri") };
}

/** Reads which prompt is to be filled in, and with what. */
export function promptIn(posted: Posted): PromptRequest {
  const [source, name] = [textIn<PromptRequest>(posted, "source"), textIn<PromptRequest>(posted, "name")];
  const given = textsIn(posted["arguments"], "arguments");
  return { source, name, ...(given !== undefined && { arguments: given }) };
}

/** Reads which argument values are wanted for. */
export function completionIn(posted: Posted): CompleteRequest {
  const { ref, argument } = posted;
  const [from, about] = [isPlainObject(ref) ? ref : {}, isPlainObject(argument) ? argument : {}];
  const given = textsIn(posted["given"], "given");
  return {
    source: textIn<CompleteRequest>(posted, "source"),
    ref:
      from["type"] === "ref/prompt"
        ? { type: "ref/prompt", name: textIn(from, "name") }
        : { type: "ref/resource", uri: textIn(from, "uri") },
    argument: { name: textIn(about, "name"), value: textIn(about, "value") },
    ...(given !== undefined && { given }),
  };
}

const MOST_GIVEN = 100;

function textsIn(value: unknown, name: string): Readonly<Record<string, string>> | undefined {
  if (value === undefined) return undefined;
  const entries = isPlainObject(value) ? Object.entries(value) : [];
  if (
    !isPlainObject(value) ||
    entries.length > MOST_GIVEN ||
    !entries.every(([, one]) => typeof one === "string")
  )
    throw badRequest(`"${name}" must hold at most ${MOST_GIVEN} texts by name.`);
  return value as Record<string, string>;
}

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const CURLY = 32;
const OPENING = 123;
const CLOSING = 125;

/** Counts the values that JSON text holds, itself included, without reading it; stops beyond `most`. Text that is no JSON gives any number. */
export function countJsonValues(text: string, most: number): number {
  let count = 1;
  /** Whether the last sign opened an object or a list, which may be empty. */
  let isFresh = false;
  for (let at = 0; at < text.length && count <= most; at++) {
    const code = text.charCodeAt(at);
    if (code <= 32) continue;
    const bracket = code | CURLY;
    if (code === COMMA || (isFresh && bracket !== CLOSING)) count += 1;
    isFresh = bracket === OPENING;
    if (code === QUOTE) at = endOfString(text, at + 1);
  }
  return count;
}

function endOfString(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
