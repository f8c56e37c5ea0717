/** Which part of a stored text is wanted, in UTF-16 units. */
export interface RangeRequest {
  /** @default 0 */
  readonly offset?: number | undefined;
  /** @default up to the end */
  readonly length?: number | undefined;
}

/** A text to keep for later, or bytes as base64. */
export interface ResultEntry {
  readonly text: string;
  readonly mimeType: string;
  /** Says that the text is bytes, whose media type `mimeType` is. @default it is a text */
  readonly encoding?: "base64" | undefined;
  /** What people see of it. @default "result" */
  readonly name?: string | undefined;
  /** Whose it is, so that no caller takes the room of others. @default nobody's */
  readonly owner?: string | undefined;
  /** Who may read it, in words of the server that keeps it: given back by `read` as it is. @default everybody who knows the address */
  readonly binding?: string | undefined;
}

/** Where a text was put. */
export interface StoredResult {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string;
  /** UTF-8 bytes of a text, or the bytes that it encodes. */
  readonly size: number;
  /** UTF-16 units, which ranges count in. */
  readonly characters: number;
}

/** A part of a stored text. */
export interface ResultRange {
  readonly text: string;
  /** Where the part begins; one before what was asked for where that would split a surrogate pair. */
  readonly offset: number;
  /** Where to go on; absent at the end. */
  readonly nextOffset?: number;
  readonly totalCharacters: number;
  readonly mimeType: string;
  /** As it was put; a store that leaves it out lets everybody read who knows the address. */
  readonly binding?: string | undefined;
  /** As it was put; a part of base64 begins and ends where a part of the bytes does. */
  readonly encoding?: "base64" | undefined;
}

/** Who reads a stored text. */
export interface StoredReader {
  /** As it was put; the text of another owner is not found. @default nobody's */
  readonly owner?: string | undefined;
}

/** Keeps whole results whose previews were sent, and reads them in ranges; `?offset=…&length=…` at a URI is a range too. */
export interface ResultStore {
  put(entry: ResultEntry): StoredResult | Promise<StoredResult>;
  /**
   * Undefined for a URI that is unknown or no longer kept; a `RangeError` for a range that cannot be. A store that keeps texts by their
   * owner finds those of the reader alone; for one that does not, `binding` says who may read.
   */
  read(
    uri: string,
    range?: RangeRequest,
    reader?: StoredReader,
  ): ResultRange | undefined | Promise<ResultRange | undefined>;
}

/** What an MCP server answers to `resources/read`. */
export interface ReadResourceResult {
  contents: ({ uri: string; mimeType: string } & ({ text: string } | { blob: string }))[];
  /** Who may read it, for the server to look at and to leave out. */
  binding?: string;
  [unknown: string]: unknown;
}

/** Reads from a store what MCP's `resources/read` answers; undefined for a URI the store does not know. */
export async function toReadResourceResult(
  store: ResultStore,
  uri: string,
  range?: RangeRequest,
  reader?: StoredReader,
): Promise<ReadResourceResult | undefined> {
  const found = await store.read(uri, range, reader);
  if (found === undefined) return undefined;
  const { mimeType, text, binding } = found;
  const held = found.encoding === "base64" ? { blob: text } : { text };
  return { contents: [{ uri, mimeType, ...held }], ...(binding !== undefined && { binding }) };
}
