import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpConnection, McpRequestOptions } from "./mcp-connection.ts";

/** Which list is walked, and how far. */
export interface PageWalk {
  /** Such as "tools/list". */
  readonly method: string;
  /** The member of each page that holds its entries. */
  readonly field: string;
  readonly limits: { readonly tools: number; readonly pages: number };
  readonly request?: McpRequestOptions | undefined;
  warn(message: string): void;
}

/** Reads all pages of a list; what makes no end, or no sense, ends it with a warning and what was read until then. */
export async function listPages(
  connection: Pick<McpConnection, "request">,
  walk: PageWalk,
): Promise<unknown[]> {
  const { method, field, request, warn } = walk;
  const found: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1; ; page++) {
    const result: unknown = await connection.request(method, cursor === undefined ? {} : { cursor }, request);
    const { entries, next } = readPage(result, field);
    if (entries === undefined) warn(`Page ${page} of ${method} holds no list of ${field}.`);
    const isCut = takeUpTo(walk.limits.tools, found, entries ?? []);
    const reason = isCut ? reasonOf("entries", walk) : whyEnded(next, page, seen, walk);
    if (reason !== undefined) warn(reason);
    if (next === undefined || reason !== undefined || entries === undefined) return found;
    seen.add(next);
    cursor = next;
  }
}

interface Page {
  readonly entries: readonly unknown[] | undefined;
  readonly next: string | undefined;
}

function readPage(result: unknown, field: string): Page {
  if (!isPlainObject(result)) return { entries: undefined, next: undefined };
  const { [field]: entries, nextCursor } = result;
  return {
    entries: Array.isArray(entries) ? entries : undefined,
    next: typeof nextCursor === "string" ? nextCursor : undefined,
  };
}

/** Tells whether something had to be left out. */
function takeUpTo(limit: number, found: unknown[], entries: readonly unknown[]): boolean {
  for (let i = 0; i < entries.length; i++) {
    if (found.length >= limit) return true;
    found.push(entries[i]);
  }
  return false;
}

/** Why a list ends although the server has more; nothing where it goes on, or is over. */
function whyEnded(
  next: string | undefined,
  page: number,
  seen: ReadonlySet<string>,
  walk: PageWalk,
): string | undefined {
  if (next === undefined) return undefined;
  if (seen.has(next)) return `${walk.method} gives the same cursor twice; the list ends there.`;
  return page >= walk.limits.pages ? reasonOf("pages", walk) : undefined;
}

function reasonOf(what: "entries" | "pages", { method, limits }: PageWalk): string {
  const limit = what === "pages" ? limits.pages : limits.tools;
  return `${method} has more than ${limit} ${what}; the rest is left out.`;
}
