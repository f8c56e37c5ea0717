import { countOpenings } from "../../core/json/json-depth.ts";
import { JsonTextError, parseJsonText } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { HttpRequest } from "../../openapi/server/http-exchange.ts";
import type { RunAsk } from "../protocol.ts";
import { badRequest } from "./failure-of.ts";
import { MOST_ID_CHARACTERS } from "./inspector-limits.ts";

/** What a page posted: an object, of which nothing else is known. */
export type Posted = Readonly<Record<string, unknown>>;

const JSON_TYPE = /^application\/json(?:\s*;|$)/i;

/** Reads what a page posted; only JSON, which no form of another page can send. */
export async function readAsk(request: HttpRequest, mostBytes: number): Promise<Posted> {
  if (!JSON_TYPE.test(request.header("content-type") ?? "")) {
    throw badRequest('Send JSON, with the header "content-type: application/json".', 415);
  }
  const bytes = await request.body(mostBytes);
  const value = parsed(bytes);
  if (!isPlainObject(value)) throw badRequest("The request must be a JSON object.");
  return value;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseJsonText(new TextDecoder("utf-8", { fatal: true }).decode(bytes), countOpenings(bytes));
  } catch (thrown) {
    if (thrown instanceof JsonTextError) throw badRequest(thrown.message);
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
  };
}
