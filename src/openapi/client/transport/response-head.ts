import type { ResponseHead } from "../http-message.ts";

type Headers = Record<string, string | string[]>;

/** Reads headers as they came, name and value in turn; any name is an ordinary one. */
export function toHeaders(raw: readonly Uint8Array[]): ResponseHead["headers"] {
  const headers: Headers = Object.create(null);
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = (raw[index] as Buffer).toString("latin1").toLowerCase();
    const value = (raw[index + 1] as Buffer).toString("latin1");
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (typeof before === "string") headers[name] = [before, value];
    else before.push(value);
  }
  return headers;
}

/** How the end of a body is told, or nothing where it is told in a way that is not understood. */
export function toFraming(
  headers: ResponseHead["headers"],
  hasBody: boolean,
): { readonly delimited: boolean; readonly length: number | undefined } | undefined {
  if (!hasBody) return { delimited: true, length: 0 };
  const transfer = headers["transfer-encoding"];
  if (transfer !== undefined) {
    const isChunked = typeof transfer === "string" && transfer.trim().toLowerCase() === "chunked";
    return isChunked ? { delimited: true, length: undefined } : undefined;
  }
  const length = headers["content-length"];
  if (length === undefined) return { delimited: false, length: undefined };
  return { delimited: true, length: Number(length) };
}
