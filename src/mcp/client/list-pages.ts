import { isCallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject, isValueTooDeep, MAX_JSON_DEPTH } from "../../core/json/json-value.ts";
import type { ImportLimits } from "./import-options.ts";
import type { McpConnection, McpRequestOptions } from "./mcp-connection.ts";
import { toPlainLine } from "./plain-line.ts";

/** Characters of a cursor that is sent back. */
export const MAX_CURSOR_LENGTH = 8_192;

/** How many times as long as one page all pages of a list may take together. */
const PATIENCE = 5;

/** What is kept of an entry that is too large. */
export interface OversizedEntry {
  /** The front of its name, for people; empty where it has none. */
  readonly name: string;
  readonly reason: string;
}

interface PageWalk {
  /** Such as "tools/list". */
  readonly method: string;
  /** The member of each page that holds its entries. */
  readonly field: string;
  readonly limits: Pick<ImportLimits, "tools" | "pages" | "definitionBytes" | "listBytes">;
  /** Its time limit is that of one page; the whole walk may take five times as long. @default that of the connection, for the walk 60_000 */
  readonly request?: McpRequestOptions | undefined;
  warn(message: string): void;
  /** Hears of entries that are left out for their size or depth. @default a warning about the first of them */
  readonly onOversized?: ((entry: OversizedEntry) => void) | undefined;
}

/** Reads all pages of a list; what makes no end, or no sense, ends it with a warning and what was read until then. */
export async function listPages(
  connection: Pick<McpConnection, "request">,
  walk: PageWalk,
): Promise<unknown[]> {
  const { method, field, warn } = walk;
  const seen = new Set<string>();
  const found = new FoundEntries(walk);
  const ask = withinDeadline(connection, walk);
  let cursor: string | undefined;
  for (let page = 1; ; page++) {
    const result = await ask(cursor, page);
    if (result === LATE) return found.entries;
    const { entries, next } = readPage(result, field);
    if (entries === undefined) warn(`Page ${page} of ${method} holds no list of ${field}.`);
    const reason = found.take(entries ?? []) ?? whyEnded(next, seen, walk);
    if (reason !== undefined) warn(reason);
    if (next === undefined || reason !== undefined || entries === undefined) return found.entries;
    seen.add(next);
    cursor = next;
  }
}

/** In place of a page that did not come in time. */
const LATE = Symbol("late");

function withinDeadline(connection: Pick<McpConnection, "request">, walk: PageWalk) {
  const { method, request, warn } = walk;
  const pageMs = request?.timeoutMs ?? 60_000;
  const endsAt = monotonicNow() + PATIENCE * pageMs;
  return async (cursor: string | undefined, page: number): Promise<unknown> => {
    const left = Math.max(0, endsAt - monotonicNow());
    const isLast = left < pageMs;
    try {
      const params = cursor === undefined ? {} : { cursor };
      const options = isLast ? { ...request, timeoutMs: left } : request;
      return await connection.request(method, params, options);
    } catch (error) {
      // What one page takes too long for is a failure; what all of them together do is a list too long.
      if (page === 1 || !isLast || !isCallError(error) || error.code !== "TIMEOUT") throw error;
      warn(`${method} takes longer than ${PATIENCE * pageMs} ms; the rest is left out.`);
      return LATE;
    }
  };
}

/** What was read of a list so far; nothing that is too large is held on to. */
class FoundEntries {
  readonly entries: unknown[] = [];
  readonly #walk: PageWalk;
  #count = 0;
  #bytes = 0;
  #warned = false;

  constructor(walk: PageWalk) {
    this.#walk = walk;
  }

  /** Says why something had to be left out with which the list ends. */
  take(entries: readonly unknown[]): string | undefined {
    const { method, limits } = this.#walk;
    for (let i = 0; i < entries.length; i++) {
      if (this.#count >= limits.tools) return `${method} has more than ${limits.tools} entries${REST}`;
      if (isValueTooDeep(entries[i], Number.MAX_VALUE)) {
        this.#count += 1;
        this.#leaveOut(entries[i], `nested more than ${MAX_JSON_DEPTH} levels deep`);
        continue;
      }
      const bytes = sizeOf(entries[i]);
      this.#bytes += bytes ?? 0;
      if (this.#bytes > limits.listBytes) return `${method} has more than ${limits.listBytes} bytes${REST}`;
      this.#count += 1;
      if (bytes === undefined) this.#leaveOut(entries[i], "no JSON");
      else if (bytes > limits.definitionBytes)
        this.#leaveOut(entries[i], `larger than ${limits.definitionBytes} bytes`);
      else this.entries.push(entries[i]);
    }
    return undefined;
  }

  #leaveOut(entry: unknown, fault: string): void {
    const { method, limits, warn, onOversized } = this.#walk;
    const name = isPlainObject(entry) ? toPlainLine(entry["name"], 200) : "";
    const reason = `Its definition is ${fault}.`;
    if (onOversized !== undefined) onOversized({ name, reason });
    else if (!this.#warned) {
      warn(`${method} has entries of more than ${limits.definitionBytes} bytes, which are left out.`);
    }
    this.#warned = true;
  }
}

const REST = "; the rest is left out.";

/** UTF-8 bytes of an entry written as JSON; nothing where it cannot be. */
function sizeOf(entry: unknown): number | undefined {
  try {
    return Buffer.byteLength(JSON.stringify(entry) ?? "");
  } catch {
    return undefined;
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

/** Why a list ends although the server has more; nothing where it goes on, or is over. */
function whyEnded(
  next: string | undefined,
  seen: ReadonlySet<string>,
  { method, limits }: PageWalk,
): string | undefined {
  if (next === undefined) return undefined;
  if (next.length > MAX_CURSOR_LENGTH) {
    return `${method} gives a cursor of more than ${MAX_CURSOR_LENGTH} characters; the list ends there.`;
  }
  if (seen.has(next)) return `${method} gives the same cursor twice; the list ends there.`;
  // All pages that were read but the first have their cursor there.
  return seen.size + 1 >= limits.pages ? `${method} has more than ${limits.pages} pages${REST}` : undefined;
}
