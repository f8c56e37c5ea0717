import { countOpenings } from "../../core/json/json-depth.ts";
import { JsonTextError, parseJsonText } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { HttpRequest } from "../../http/exchange.ts";
import type { RunAsk } from "../protocol.ts";
import { countJsonValues } from "./count-json-values.ts";
import { badRequest } from "./failure-of.ts";
import { MOST_ID_CHARACTERS } from "./inspector-limits.ts";

/** What a page posted: an object, of which nothing else is known. */
export type Posted = Readonly<Record<string, unknown>>;

const JSON_TYPE = /^application\/json(?:\s*;|$)/i;

/** Takes what a page posted, unread; only JSON, which no form of another page can send. */
export async function readAsk(request: HttpRequest, mostBytes: number): Promise<Uint8Array> {
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
export function readRunAsk(posted: Posted): RunAsk {
  const operation = idIn<RunAsk>(posted, "operation");
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
  const page = idIn<RunAsk>(posted, "page");
  if (page.length < LEAST_PAGE_CHARACTERS)
    throw badRequest(`"page" must have at least ${LEAST_PAGE_CHARACTERS} characters, chosen at random.`);
  return page;
}
