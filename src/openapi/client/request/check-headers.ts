import { isFramingHeader, isHeaderValue, isToken } from "../header-rules.ts";
import { invalidInput } from "./invalid-input.ts";

/** Says what keeps an input from being the value of a header. */
export function checkHeaderInput(value: string, key: string): string {
  if (isHeaderValue(value)) return value;
  if (/^[\t -~]*$/.test(value)) {
    throw invalidInput(key, "begins or ends with a space, which a header cannot hold");
  }
  throw invalidInput(key, "holds characters that a header cannot hold: only visible ASCII, spaces and tabs");
}

/** Copies the headers of the options, names in lower case; a `TypeError` names what cannot be sent. */
export function checkOptionHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    if (!isToken(given))
      throw new TypeError(`headers: ${JSON.stringify(given)} is not the name of a header.`);
    if (isFramingHeader(name) || name === "content-type") {
      throw new TypeError(`headers: "${name}" is written for each request and cannot be set.`);
    }
    if (typeof value !== "string" || !isHeaderValue(value)) {
      const found =
        typeof value === "string" ? "" : `; it is ${value === undefined ? "" : "of type "}${typeof value}`;
      throw new TypeError(
        `headers: the value of "${name}" must be text of visible ASCII characters${found}.`,
      );
    }
    checked[name] = value;
  }
  return checked;
}
