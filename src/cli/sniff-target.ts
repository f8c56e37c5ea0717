import { open } from "node:fs/promises";
import { parseUrl } from "../core/text/parse-url.ts";

/** Characters that are looked at to tell what something is. */
const MOST_SEEN = 65_536;
const PATIENCE_MS = 5_000;

/** What an address may turn out to be. */
export type SniffedAddress = "openapi" | "mcp" | "gateway";

/** The member that every OpenAPI document has, as JSON or YAML spell it. */
const MARK =
  /(?:^|[\n{,])\s*(?:"openapi"|"swagger"|'openapi'|'swagger'|openapi|swagger)\s*:\s*["']?[23](?:\.\d|["'\s,}])/;

/** Tells by the name of an address, and where that says nothing by what stands there, what it is. */
export async function sniffAddress(url: string, signal?: AbortSignal): Promise<SniffedAddress> {
  if (parseUrl(url) === undefined) return "mcp";
  const { pathname, origin } = new URL(url);
  if (/\.(?:json|ya?ml)$/i.test(pathname)) return "openapi";
  if (/\/(?:mcp|sse)\/?$/i.test(pathname)) return "mcp";
  if (isDocument(await look(url, signal))) return "openapi";
  const base = `${origin}${pathname.replace(/\/(?:api|docs)?\/?$/, "")}`;
  const [document, health] = await Promise.all([
    look(`${base}/openapi.json`, signal),
    look(`${base}/health`, signal),
  ]);
  return isDocument(document) && health !== "" ? "gateway" : "mcp";
}

/** Tells whether a file holds a document. */
export async function sniffFile(path: string): Promise<"openapi" | "other"> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_SEEN), 0, MOST_SEEN, 0);
    return isDocument(buffer.toString("utf8", 0, bytesRead)) ? "openapi" : "other";
  } finally {
    await file.close();
  }
}

function isDocument(text: string): boolean {
  return MARK.test(text.slice(0, MOST_SEEN));
}

/** The beginning of what an address answers with a success; nothing otherwise. */
async function look(url: string, signal: AbortSignal | undefined): Promise<string> {
  const within = [AbortSignal.timeout(PATIENCE_MS), ...(signal === undefined ? [] : [signal])];
  try {
    const response = await fetch(url, { signal: AbortSignal.any(within), redirect: "manual" });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      return "";
    }
    return await beginningOf(response.body);
  } catch {
    signal?.throwIfAborted();
    return "";
  }
}

async function beginningOf(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length >= MOST_SEEN) break;
  }
  return text;
}
