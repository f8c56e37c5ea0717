import { isFramingHeader } from "../header-rules.ts";
import type { OutgoingRequest } from "../http-message.ts";
import { ACCEPTED_ENCODINGS } from "./content-decoder.ts";

/** Lists headers as they are sent, name and value in turn. */
export function toRawHeaders(headers: OutgoingRequest["headers"]): string[] {
  const raw: string[] = [];
  let accepts = false;
  for (const given of Object.keys(headers)) {
    const name = given.toLowerCase();
    // What the connection itself has to say: no caller's word for it is taken.
    if (isFramingHeader(name)) continue;
    if (name === "accept-encoding") accepts = true;
    raw.push(name, headers[given] as string);
  }
  if (!accepts) raw.push("accept-encoding", ACCEPTED_ENCODINGS);
  return raw;
}
