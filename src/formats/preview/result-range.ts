import type { RangeRequest } from "../../core/result/result-store.ts";

/** A place in a store, and the part its URI asks for. */
export interface ResultAddress extends RangeRequest {
  readonly id: string;
}

const ADDRESS = /^waybill:\/\/results\/([0-9a-f]{32})(?:\?(.*))?$/s;
const PARAMETER = /^(offset|length)=(0|[1-9][0-9]{0,15})$/;

/** Writes the URI of a stored result. */
export function toResultUri(id: string): string {
  return `waybill://results/${id}`;
}

/** Reads a URI of ours, `?offset=…&length=…` included; undefined for any other, a `RangeError` for a malformed range. */
export function parseResultUri(uri: string): ResultAddress | undefined {
  const [, id, query] = ADDRESS.exec(uri) ?? [];
  if (id === undefined) return undefined;
  const address: { id: string; offset?: number; length?: number } = { id };
  for (const parameter of query?.split("&", 3) ?? []) {
    const [, name, digits] = PARAMETER.exec(parameter) ?? [];
    if (name !== "offset" && name !== "length") {
      const shown = JSON.stringify(parameter.slice(0, 40));
      throw new RangeError(`A range in a URI is written offset=0&length=2000, in digits; found ${shown}.`);
    }
    if (address[name] !== undefined) throw new RangeError(`${name} may be given only once in a URI.`);
    address[name] = Number(digits);
  }
  return address;
}

/** Finds where a range begins and ends in a text: moved to the beginning of a surrogate pair it would split, never empty. */
export function placeRange(
  text: string,
  { offset = 0, length }: RangeRequest,
): { start: number; end: number } {
  if (!Number.isSafeInteger(offset) || offset < 0 || offset > text.length) {
    throw new RangeError(`offset must be a whole number from 0 to ${text.length}; it is ${offset}.`);
  }
  if (length !== undefined && (!Number.isSafeInteger(length) || length < 1)) {
    throw new RangeError(`length must be a whole number of at least 1; it is ${length}.`);
  }
  const start = splitsPair(text, offset) ? offset - 1 : offset;
  const wanted = Math.min(text.length, offset + (length ?? text.length));
  if (!splitsPair(text, wanted)) return { start, end: wanted };
  return { start, end: wanted - 1 > start ? wanted - 1 : wanted + 1 };
}

function splitsPair(text: string, place: number): boolean {
  return place > 0 && place < text.length && (text.codePointAt(place - 1) as number) > 0xffff;
}
