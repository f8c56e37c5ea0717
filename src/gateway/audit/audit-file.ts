import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { CallError } from "../../core/errors/errors.ts";
import type { Hooks } from "../../core/execution/dispatch.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { holdForProcess } from "../state/process-hold.ts";

/** How the audit file of a gateway is written. */
export interface AuditOptions {
  /** Bytes of one file; then it is set aside under the number of its first record, and another one begins. @default 67_108_864 */
  readonly maxBytes?: number | undefined;
  /** Refuses calls while records cannot be written. @default false */
  readonly required?: boolean | undefined;
}

/** Bounds of an audit file. */
export const AUDIT_LIMITS = {
  /** Characters of records that wait to be written; what comes then is dropped and counted. */
  waiting: 16_777_216,
  /** Characters of one record; a longer one keeps only what it is about. */
  record: 16_384,
} as const;

/** Where a chain of records stands: how many there are, and the hash of the last one. */
export interface AuditHead {
  readonly seq: number;
  readonly hash: string;
}

/** What one record says, apart from its place in the chain. */
export type AuditFields = Readonly<Record<string, unknown>>;

/** What is before the first record. */
export const FIRST_HASH = "0".repeat(64);

const RETRY_MS = 1_000;
/** More than two records take, the last one and a part of the next. */
const TAIL_BYTES = 131_072;

/** Hashes one line of an audit file: what the next line names as the one before it. */
export function hashLine(line: string | Uint8Array): string {
  return createHash("sha256").update(line).digest("hex");
}

/**
 * Writes records to a file, one line of JSON each, in which `seq` counts and `prev` is the SHA-256 of the line before: a record that is
 * changed, taken out or put in breaks the chain, and a cut end shows against a head that was kept elsewhere. One process writes a file.
 */
export class AuditFile {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #isRequired: boolean;
  readonly #onFault: TellFault;
  /** Lets another process write the file. */
  readonly #release: () => Promise<void>;
  #file: FileHandle;
  /** Bytes that are written and known to be whole. */
  #offset: number;
  #firstSeq: number;
  /** From how many bytes on the file is set aside. */
  #setAsideAt: number;
  #head: AuditHead;
  #waiting = "";
  #dropped = 0;
  #allDropped = 0;
  #isFailing = false;
  #isScheduled = false;
  /** Runs while the last attempt failed: nothing is written before it ends. */
  #retry: NodeJS.Timeout | undefined;
  #written: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(
    start: Start & { readonly path: string; readonly release: () => Promise<void> },
    options: AuditOptions,
    onFault: TellFault,
  ) {
    this.#path = start.path;
    this.#maxBytes = options.maxBytes ?? 67_108_864;
    this.#setAsideAt = this.#maxBytes;
    this.#isRequired = options.required === true;
    this.#onFault = onFault;
    this.#release = start.release;
    this.#file = start.file;
    this.#offset = start.offset;
    this.#head = start.head;
    this.#firstSeq = start.firstSeq;
  }

  /** Opens a file and goes on with its chain; throws where another process writes it or its end makes no sense. */
  static async open(
    path: string,
    options: AuditOptions = {},
    onFault: TellFault = () => {},
  ): Promise<AuditFile> {
    await mkdir(dirname(path), { recursive: true });
    const release = await holdForProcess(
      `${path}.lock`,
      (pid) =>
        `Process ${pid} writes the audit file "${path}". Give each gateway an "audit.file" of its own.`,
    );
    try {
      const start = { ...(await readStart(path)), path, release };
      const audit = new AuditFile(start, options, onFault);
      if (start.tornHash !== undefined) audit.#takeTorn(start.tornHash);
      return audit;
    } catch (thrown) {
      await release();
      throw thrown;
    }
  }

  /** The last record so far, written or about to be. */
  get head(): AuditHead {
    return this.#head;
  }

  /** Records that were dropped because those before them could not be written. */
  get dropped(): number {
    return this.#allDropped;
  }

  /** Whether the last attempt to write failed. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Refuses calls while records cannot be written, if that is asked for. */
  get hooks(): Hooks {
    const check = (): void => {
      if (!this.#isRequired || !this.#isFailing) return;
      throw new CallError(
        "UNAVAILABLE",
        "The gateway cannot write its audit records, and takes no calls until it can.",
        {
          stack: false,
        },
      );
    };
    return {
      execute: async (_, next) => {
        check();
        return await next();
      },
      subscribe: async function* (_, next) {
        check();
        yield* next();
      },
    };
  }

  /** Adds a record; it is written soon, in the order in which records came. */
  add(fields: AuditFields): void {
    if (this.#isClosed) return;
    if (this.#waiting.length > AUDIT_LIMITS.waiting) {
      this.#dropped += 1;
      this.#allDropped += 1;
      return;
    }
    if (this.#dropped > 0) {
      const dropped = this.#dropped;
      this.#dropped = 0;
      this.#put({ event: "audit", dropped });
    }
    this.#put(fields);
  }

  /** Writes what waits and makes sure that the disk has it. */
  async flush(): Promise<void> {
    while (this.#waiting !== "" && !this.#isFailing) await this.#write();
    if (!this.#isFailing) await this.#file.datasync();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#written;
    clearTimeout(this.#retry);
    await this.#write();
    await this.flush().catch((cause: unknown) => this.#onFault(CLOSED, cause));
    if (this.#waiting !== "") this.#onFault(CLOSED, undefined);
    await this.#file.close();
    await this.#release();
  }

  #put(fields: AuditFields): void {
    const time = new Date().toISOString();
    const place = { seq: this.#head.seq + 1, prev: this.#head.hash, time };
    let line = JSON.stringify({ ...place, ...fields });
    if (line.length > AUDIT_LIMITS.record)
      line = JSON.stringify({ ...place, ...shortened(fields), isCut: true });
    this.#head = { seq: place.seq, hash: hashLine(line) };
    this.#waiting += `${line}\n`;
    this.#schedule();
  }

  /** A process that ended while it wrote leaves part of a line: it stays, and the next record names it and the record before it. */
  #takeTorn(hash: string): void {
    const { seq, hash: after } = this.#head;
    if (this.#offset > 0) this.#waiting += "\n";
    this.#head = { seq, hash };
    this.#put({ event: "audit", torn: true, after });
  }

  /** Records of one turn are written together. */
  #schedule(): void {
    if (this.#isScheduled || this.#retry !== undefined) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#write();
    });
  }

  /** One write at a time. */
  #write(): Promise<void> {
    this.#written = this.#written.then(() => this.#writeNow());
    return this.#written;
  }

  async #writeNow(): Promise<void> {
    const text = this.#waiting;
    if (text === "") return;
    const bytes = Buffer.from(text);
    try {
      // At its place: what an attempt that failed half way left there is written over.
      for (let at = 0; at < bytes.length; ) {
        at += (await this.#file.write(bytes, at, bytes.length - at, this.#offset + at)).bytesWritten;
      }
      this.#offset += bytes.length;
      this.#waiting = this.#waiting.slice(text.length);
      if (this.#isFailing) this.#onFault("The audit file is written again.", undefined);
      this.#isFailing = false;
      if (this.#offset >= this.#setAsideAt) await this.#setAside();
    } catch (cause) {
      if (!this.#isFailing) this.#onFault(`The audit file "${this.#path}" cannot be written.`, cause);
      this.#isFailing = true;
      if (this.#isClosed) return;
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined;
        void this.#write();
      }, RETRY_MS).unref();
    }
  }

  /** A file that cannot be set aside is written on, and tried again when it has grown as much once more. */
  async #setAside(): Promise<void> {
    const full = this.#file;
    const aside = setAsidePath(this.#path, this.#firstSeq);
    try {
      await full.datasync();
      await rename(this.#path, aside);
      this.#file = await open(this.#path, "wx", 0o600).catch(async (cause: unknown) => {
        await rename(aside, this.#path);
        throw cause;
      });
    } catch (cause) {
      this.#setAsideAt = this.#offset + this.#maxBytes;
      this.#onFault(`The audit file "${this.#path}" cannot be set aside.`, cause);
      return;
    }
    await full.close();
    this.#offset = 0;
    this.#setAsideAt = this.#maxBytes;
    this.#firstSeq = this.#head.seq - (this.#waiting.split("\n").length - 1) + 1;
  }
}

/** Hears what is wrong with an audit file. */
type TellFault = (sentence: string, cause: unknown) => void;

const CLOSED = "The last audit records could not be written.";

/** A record without its lists, and with a part of each long text: what a source has found in its results never drives out who approved the call. */
function shortened(fields: AuditFields): AuditFields {
  const cut = Object.entries(fields).map(([name, value]) => {
    if (isPlainObject(value)) return [name, shortened(value)] as const;
    return [name, typeof value === "string" ? value.slice(0, 200) : value] as const;
  });
  return Object.fromEntries(cut.filter(([, value]) => !Array.isArray(value)));
}

/** The name of a file that is full: that of the file it was, with the number of its first record. */
function setAsidePath(path: string, firstSeq: number): string {
  const ending = extname(path);
  const number = String(firstSeq).padStart(12, "0");
  return join(dirname(path), `${basename(path, ending)}.${number}${ending}`);
}

/** The files of one chain, oldest first: those that were set aside, and the one that is written now. */
export async function auditFiles(path: string): Promise<readonly string[]> {
  const folder = dirname(path);
  const ending = extname(path);
  const start = `${basename(path, ending)}.`;
  const names = await readdir(folder);
  const aside = names.filter((name) => {
    const number =
      name.startsWith(start) && name.endsWith(ending)
        ? name.slice(start.length, -ending.length || undefined)
        : "";
    return /^\d{12}$/.test(number) && setAsidePath(path, Number(number)) === join(folder, name);
  });
  return [
    ...aside.sort().map((name) => join(folder, name)),
    ...(names.includes(basename(path)) ? [path] : []),
  ];
}

interface Start {
  readonly file: FileHandle;
  readonly offset: number;
  readonly head: AuditHead;
  readonly firstSeq: number;
  /** The hash of a line that was not written to its end. */
  readonly tornHash?: string;
}

async function readStart(path: string): Promise<Start> {
  // Created where it is missing, and never emptied.
  await (await open(path, "a", 0o600)).close();
  const file = await open(path, "r+");
  try {
    const { size } = await file.stat();
    const own = await readEnd(file, path);
    // A file without a record goes on where the one that was set aside last ends.
    const before = own.head === undefined ? await endOfAside(path) : own;
    const head = before.head ?? { seq: 0, hash: FIRST_HASH };
    const tornHash = own.tornHash ?? before.tornHash;
    const firstSeq = own.head === undefined ? head.seq + 1 : await firstSeqOf(file, head.seq);
    return { file, offset: size, head, firstSeq, ...(tornHash !== undefined && { tornHash }) };
  } catch (thrown) {
    await file.close();
    throw thrown;
  }
}

interface End {
  /** The last record; nothing where there is none. */
  readonly head?: AuditHead;
  /** The hash of what follows it without being a whole line. */
  readonly tornHash?: string;
}

async function endOfAside(path: string): Promise<End> {
  const last = (await auditFiles(path)).filter((file) => file !== path).at(-1);
  if (last === undefined) return {};
  const file = await open(last, "r");
  try {
    return await readEnd(file, last);
  } finally {
    await file.close();
  }
}

/** Reads how a file ends; throws where that is not the end of an audit file. */
async function readEnd(file: FileHandle, path: string): Promise<End> {
  const { size } = await file.stat();
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
  await file.read(tail, 0, tail.length, size - tail.length);
  const torn = tail.subarray(tail.lastIndexOf(0x0a) + 1);
  const lines = tail.toString("utf8").split("\n").slice(0, -1);
  const last = lines.findLast((line) => parseRecord(line) !== undefined);
  if (last === undefined && (lines.length > 0 || tail.length < size)) {
    throw new Error(
      `"${path}" is no audit file: its records cannot be read. Give "audit.file" another name.`,
    );
  }
  const seq = last === undefined ? undefined : parseRecord(last)?.seq;
  return {
    ...(last !== undefined && seq !== undefined && { head: { seq, hash: hashLine(last) } }),
    ...(torn.length > 0 && { tornHash: hashLine(torn) }),
  };
}

/** The number of the first record of a file; `otherwise` where its beginning has none. */
async function firstSeqOf(file: FileHandle, otherwise: number): Promise<number> {
  const start = Buffer.alloc(TAIL_BYTES);
  const { bytesRead } = await file.read(start, 0, start.length, 0);
  for (const line of start.toString("utf8", 0, bytesRead).split("\n")) {
    const record = parseRecord(line);
    if (record !== undefined) return record.seq;
  }
  return otherwise;
}

/** Reads one line; nothing where it is no record. */
export function parseRecord(
  line: string,
): { readonly seq: number; readonly prev: string; readonly [field: string]: unknown } | undefined {
  try {
    const record = JSON.parse(line);
    const { seq, prev } = record as { seq: unknown; prev: unknown };
    return Number.isSafeInteger(seq) && typeof prev === "string" ? record : undefined;
  } catch {
    return undefined;
  }
}
