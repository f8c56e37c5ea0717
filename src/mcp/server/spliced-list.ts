import { randomUUID } from "node:crypto";

/** Stands in a message for a list whose JSON is at hand; nobody can guess it, so nobody else's text is taken for it. */
const PLACE = `waybill-list:${randomUUID()}`;
const WRITTEN = JSON.stringify([PLACE]);

const jsonOf = new WeakMap<object, string>();

/**
 * Makes a list that is sent as JSON text at hand: thousands of tools need not be turned into text again for everybody who asks.
 * Whoever writes the message puts the text in with `spliced`; over HTTP the SDK does the writing, so the request remembers it too.
 */
export function toSplicedList(json: string, request: Request | undefined): readonly string[] {
  const list = Object.freeze([PLACE]);
  jsonOf.set(list, json);
  if (request !== undefined) jsonOf.set(request, json);
  return list;
}

/** The JSON that belongs to a list or to the request it answers; nothing for any other. */
export function splicedJsonOf(listOrRequest: unknown): string | undefined {
  return typeof listOrRequest === "object" && listOrRequest !== null ? jsonOf.get(listOrRequest) : undefined;
}

/** Puts the JSON of a list into the message that was written with it. */
export function spliced(message: string, json: string): string {
  const at = message.indexOf(WRITTEN);
  return at === -1 ? message : message.slice(0, at) + json + message.slice(at + WRITTEN.length);
}
