import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CallError, type CompiledSchema, compileSchema } from "waybill";
import { type Book, BookSchema, FIRST_BOOK, PARCEL_LIMITS } from "./parcel.ts";

/** Runs something while no other process does so for the same file; what runs may ask whether that still holds. */
export type Hold = <T>(path: string, run: (assertHeld: () => Promise<void>) => Promise<T>) => Promise<T>;

/** How a book is kept. */
export interface ParcelBookOptions {
  /** Hears of a file that was set aside, or cannot be used, by its path. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
  /** Parcels in the book. @default 10_000 */
  readonly maxParcels?: number | undefined;
  /** Keeps other processes out while the book changes. @default one process has the book to itself */
  readonly hold?: Hold | undefined;
}

/** What was found in the file: a book, nothing, something that is no book, or the book of a later version of this program. */
type Found = Book | "none" | "damaged" | "newer";

interface Seen {
  readonly mark: string;
  readonly found: Found;
}

/**
 * The parcels of all processes of a user, in one file: replaced whole, one change at a time, so that nobody reads half of one and no
 * change is lost. A file that is damaged is set aside, and a new one begun.
 */
export class ParcelBook {
  readonly maxParcels: number;
  readonly #path: string;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #holdFile: Hold;
  readonly #listeners = new Set<() => void>();
  #seen: Seen | undefined;

  constructor(path: string, options: ParcelBookOptions = {}) {
    this.#path = path;
    this.#warn = options.onWarning ?? (() => {});
    this.#holdFile = options.hold ?? ((_, run) => run(async () => {}));
    this.maxParcels = options.maxParcels ?? PARCEL_LIMITS.parcels;
  }

  /** The book as it is now; must not be changed. */
  async read(): Promise<Book> {
    const { found } = await this.#look();
    if (found === "damaged") return await this.#hold(async () => await this.#readHeld());
    return this.#toBook(found);
  }

  /** Replaces the book by what `change` makes of it; nothing is written where that is the same book. */
  async change<T>(change: (book: Book) => { readonly book: Book; readonly result: T }): Promise<T> {
    const made = await this.#hold(async (assertHeld) => {
      const before = await this.#readHeld();
      const { book, result } = change(before);
      if (book !== before) await this.#write(book, assertHeld);
      return result;
    });
    for (const listener of this.#listeners) listener();
    return made;
  }

  /** Hears, at once, of changes made through this object; returns how to stop. */
  onChange(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  async #hold<T>(run: (assertHeld: () => Promise<void>) => Promise<T>): Promise<T> {
    try {
      await mkdir(dirname(this.#path), { recursive: true });
      return await this.#holdFile(this.#path, run);
    } catch (error) {
      throw error instanceof CallError ? error : this.#unavailable("cannot be written", error);
    }
  }

  /** Reads while nobody else changes anything, and sets aside what is no book. */
  async #readHeld(): Promise<Book> {
    const { found } = await this.#look();
    if (found !== "damaged") return this.#toBook(found);
    const aside = `${this.#path}.damaged-${new Date().toISOString().replaceAll(":", "-")}`;
    await rename(this.#path, aside);
    this.#seen = undefined;
    this.#warn(`${this.#path} was damaged; it is kept as ${aside}, and a new book was begun.`);
    return FIRST_BOOK;
  }

  #toBook(found: Exclude<Found, "damaged">): Book {
    if (found === "newer") throw this.#unavailable("was written by a later version of Waybill");
    return found === "none" ? FIRST_BOOK : found;
  }

  /** Reads the file, unless it is still the one that was read last. */
  async #look(): Promise<Seen> {
    try {
      const mark = await this.#markOf();
      if (mark !== this.#seen?.mark) this.#seen = { mark, found: await this.#load() };
      return this.#seen;
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") return { mark: "", found: "none" };
      throw this.#unavailable("cannot be read", error);
    }
  }

  /** Differs whenever the file was replaced. */
  async #markOf(): Promise<string> {
    const { ino, mtimeNs, size } = await stat(this.#path, { bigint: true });
    return `${ino}:${mtimeNs}:${size}`;
  }

  async #load(): Promise<Found> {
    const { size } = await stat(this.#path);
    if (size > PARCEL_LIMITS.fileBytes) return "damaged";
    const value = parseJsonOrNone(await readFile(this.#path, "utf8"));
    if (isNewer(value)) return "newer";
    return isBook(value) ? value : "damaged";
  }

  async #write(book: Book, assertHeld: () => Promise<void>): Promise<void> {
    const draft = `${this.#path}.${randomUUID()}.tmp`;
    try {
      const file = await open(draft, "wx", 0o600);
      try {
        await file.writeFile(JSON.stringify(book));
        await file.sync();
      } finally {
        await file.close();
      }
      await assertHeld();
      await rename(draft, this.#path);
      // The process that took over meanwhile may have read the file before, and write it without this change.
      await assertHeld();
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** Paths are for the operator of this process, not for its callers. */
  #unavailable(what: string, cause?: unknown): CallError {
    this.#warn(`${this.#path} ${what}.`, cause);
    return new CallError("UNAVAILABLE", `The book of parcels ${what}.`, { cause });
  }
}

function parseJsonOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isNewer(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !("version" in value)) return false;
  return typeof value.version === "number" && value.version > 1;
}

let bookCheck: CompiledSchema | undefined;

function isBook(value: unknown): value is Book {
  bookCheck ??= compileSchema(BookSchema);
  return bookCheck.check(value);
}
