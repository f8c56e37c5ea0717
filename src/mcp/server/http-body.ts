import { isTextTooDeep } from "../../core/json/json-depth.ts";
import { parseJsonText } from "../../core/json/json-text.ts";
import { createRefusal } from "./http-refusal.ts";

/** From this size on, the depth is looked at before the text is parsed: parsing deep text takes a hundred times as long. */
const LARGE_CHARACTERS = 65_536;

/** What was posted, or why it is refused. */
export type PostedBody = { readonly value: unknown } | { readonly refusal: Response };

/** Reads a posted body once and as JSON; one that is too long is refused before it has been read, or as soon as that shows. */
export async function readPostedBody(request: Request, maxBytes: number): Promise<PostedBody> {
  let text: string | undefined;
  try {
    text = await readText(request, maxBytes);
  } catch {
    return { refusal: createRefusal(400, "The body of the request could not be read.", { code: -32_700 }) };
  }
  if (text === undefined) {
    return { refusal: createRefusal(413, `The body of the request is longer than ${maxBytes} bytes.`) };
  }
  try {
    if (text.length >= LARGE_CHARACTERS && isTextTooDeep(text)) throw new Error("too deep");
    return { value: parseJsonText(text) };
  } catch {
    const message = "The body of the request is not JSON, or it is nested too deeply.";
    return { refusal: createRefusal(400, message, { code: -32_700 }) };
  }
}

async function readText(request: Request, maxBytes: number): Promise<string | undefined> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) return undefined;
  // HTTP servers hold a body to its declared length, so that nothing need be counted.
  if (declared !== null && /^\d+$/.test(declared)) {
    const text = await request.text();
    return text.length > maxBytes ? undefined : text;
  }
  return request.body === null ? "" : countText(request.body, maxBytes);
}

async function countText(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return undefined;
    pieces.push(decoder.decode(chunk, { stream: true }));
  }
  pieces.push(decoder.decode());
  return pieces.join("");
}
