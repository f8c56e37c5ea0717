import { type FileHandle, mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { recordId } from "./local-state-store.ts";
import { holdForProcess } from "./process-hold.ts";
import { STATE_VERSION, StateError, type StateFaultListener, type StateName } from "./state-store.ts";

/** What stands in a log: a record, that there is none any more, or what another version wrote. */
export type LoggedRecord =
  | {
      readonly kind: "record";
      readonly name: StateName;
      readonly value: Uint8Array;
      readonly revision: number;
      readonly expiresAt: number;
      readonly bytes: number;
      readonly listed: boolean;
    }
  | { readonly kind: "deleted"; readonly name: StateName; readonly revision: number }
  | {
      readonly kind: "foreign";
      readonly name: StateName;
      readonly revision: number;
      readonly version: unknown;
      readonly text: string;
    };

/** How a log is kept. */
interface StateLogOptions {
  /** Unix epoch milliseconds. */
  readonly now: () => number;
  readonly onFault: StateFaultListener;
}

const LOG_FILE = "state.log";
const LOCK_FILE = "state.lock";
/** Bytes of the log that are worth no compaction. */
const SMALL_LOG = 4 * 1_048_576;
/** Characters that are written at a time while a log is compacted. */
const CHUNK = 1_048_576;

/**
 * A log of changes in a folder, for one process at a time. A change is acknowledged once it is on the disk (`fdatasync`), all that wait
 * together. The log is written anew, and put in place of the old one whole, when most of it is out of date.
 *
 * A line is a checksum and a change as JSON. What a crash left of the last line is cut off; a line in the middle that is damaged is left out
 * and told of.
 */
export class StateLog {
  /** What the log held, and every change since: the store changes it. */
  readonly records: Map<string, LoggedRecord>;
  readonly #folder: string;
  readonly #options: StateLogOptions;
  readonly #releaseLock: () => Promise<void>;
  #file: FileHandle;
  #bytes: number;
  #liveBytes = 0;
  #waiting: { readonly line: string; readonly settle: (error?: StateError) => void }[] = [];
  #writing: Promise<void> | undefined;
  #failure: StateError | undefined;

  private constructor(
    folder: string,
    options: StateLogOptions,
    opened: Pick<OpenedLog, "records" | "file" | "bytes"> & { readonly releaseLock: () => Promise<void> },
  ) {
    this.#folder = folder;
    this.#options = options;
    this.records = opened.records;
    this.#file = opened.file;
    this.#bytes = opened.bytes;
    this.#releaseLock = opened.releaseLock;
  }

  /** Opens the log of a folder, which is made where it is missing; an `Error` says why it cannot be used. */
  static async open(folder: string, options: StateLogOptions): Promise<StateLog> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const releaseLock = await holdForProcess(join(folder, LOCK_FILE), (pid) => inUse(folder, pid));
    try {
      const opened = await openLog(join(folder, LOG_FILE), options);
      const log = new StateLog(folder, options, { ...opened, releaseLock });
      if (log.#bytes > SMALL_LOG) await log.#compact();
      return log;
    } catch (thrown) {
      await releaseLock();
      throw thrown;
    }
  }

  /** Writes a change down; resolves when it is on the disk, and rejects where it is not. */
  append(change: LoggedRecord): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const settle = (error?: StateError): void => (error === undefined ? resolve() : reject(error));
      this.#waiting.push({ line: toLine(change), settle });
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined;
      });
    });
  }

  async close(): Promise<void> {
    this.#failure ??= new StateError("unreachable", "The state is closed.");
    await this.#writing;
    await this.#file.close();
    await this.#releaseLock();
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const error = await this.#writeBatch(batch.map(({ line }) => line).join(""));
      for (const { settle } of batch) settle(error);
      if (error === undefined && this.#bytes > SMALL_LOG && this.#bytes > 2 * this.#liveBytes) {
        await this.#compact().catch((thrown) =>
          this.#tell("The log of the state cannot be compacted.", thrown),
        );
      }
    }
  }

  /** A batch is there whole or not at all: what was written of one that failed is cut off. */
  async #writeBatch(text: string): Promise<StateError | undefined> {
    if (this.#failure !== undefined) return this.#failure;
    const bytes = Buffer.from(text);
    try {
      await writeAll(this.#file, bytes, this.#bytes);
      await this.#file.datasync();
      this.#bytes += bytes.length;
      return undefined;
    } catch (thrown) {
      const error = this.#tell("The state cannot be written.", thrown);
      await this.#file.truncate(this.#bytes).catch((cause: unknown) => {
        this.#failure = this.#tell(
          "The state cannot be written any more; start again once there is room.",
          cause,
        );
      });
      return error;
    }
  }

  /** Writes what there is now into a new file, and puts it in the place of the old one. */
  async #compact(): Promise<void> {
    const path = join(this.#folder, LOG_FILE);
    const draft = `${path}.new`;
    const file = await open(draft, "w", 0o600);
    let old: FileHandle;
    try {
      let bytes = 0;
      const write = async (text: string): Promise<void> => {
        const chunk = Buffer.from(text);
        await writeAll(file, chunk, bytes);
        bytes += chunk.length;
      };
      let text = "";
      const now = this.#options.now();
      // What changes meanwhile is in the log again, behind this.
      for (const record of this.records.values()) {
        if (record.kind === "record" && record.expiresAt <= now) continue;
        text += toLine(record);
        if (text.length < CHUNK) continue;
        await write(text);
        text = "";
      }
      await write(text);
      await file.sync();
      await rename(draft, path);
      // From here on the old file is nobody's: what was written to it would be lost, whatever fails below.
      old = this.#file;
      this.#file = file;
      this.#bytes = bytes;
      this.#liveBytes = bytes;
    } catch (thrown) {
      // A log as long as this is not tried again at once.
      this.#liveBytes = this.#bytes;
      await file.close().catch(() => {});
      await rm(draft, { force: true });
      throw thrown;
    }
    await old.close();
    await syncFolder(this.#folder);
  }

  #tell(message: string, cause: unknown): StateError {
    const isFull = ["ENOSPC", "EDQUOT", "EFBIG"].includes((cause as { code?: string }).code ?? "");
    const fault = isFull ? "full" : "unreachable";
    const error = new StateError(fault, isFull ? "There is no room on the disk for the state." : message, {
      cause,
    });
    this.#options.onFault(fault, error.message, cause);
    return error;
  }
}

interface OpenedLog {
  readonly records: Map<string, LoggedRecord>;
  readonly file: FileHandle;
  readonly bytes: number;
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function openLog(path: string, { now, onFault }: StateLogOptions): Promise<OpenedLog> {
  const records = new Map<string, LoggedRecord>();
  const text = await readFile(path).catch((thrown: { code?: string }) => {
    if (thrown.code === "ENOENT") return Buffer.alloc(0);
    throw thrown;
  });
  const end = text.lastIndexOf(10) + 1;
  let kept = 0;
  let damaged = 0;
  for (let at = 0; at < end; ) {
    const next = text.indexOf(10, at) + 1;
    const change = readLine(text.toString("utf8", at, next - 1));
    at = next;
    if (change === undefined) {
      damaged++;
      continue;
    }
    kept = next;
    apply(records, change, now());
  }
  // Of a log that a crash cut short, what was there before can be read: this one is kept for whoever can mend it.
  if (kept === 0 && end > 0) {
    await rename(path, `${path}.damaged`);
    onFault(
      "damaged",
      `Nothing in the log of the state can be read: it is now ${LOG_FILE}.damaged, and the state is empty.`,
    );
  }
  // Lines that cannot be read are a torn tail where nothing that can be read comes after them.
  else if (text.length > kept)
    onFault("torn", "The last change of the state was cut short by a crash; it was never acknowledged.");
  else if (damaged > 0) onFault("damaged", `${damaged} lines of the state are damaged and were left out.`);
  await writeFile(path, "", { flag: "a", mode: 0o600 });
  const file = await open(path, "r+");
  await file.truncate(kept);
  return { records, file, bytes: kept };
}

function apply(records: Map<string, LoggedRecord>, change: LoggedRecord, now: number): void {
  const id = recordId(change.name);
  if ((records.get(id)?.revision ?? 0) > change.revision) return;
  const isGone = change.kind === "deleted" || (change.kind === "record" && change.expiresAt <= now);
  if (isGone) records.delete(id);
  else records.set(id, change);
}

function toLine(change: LoggedRecord): string {
  if (change.kind === "foreign") return `${checksum(change.text)} ${change.text}\n`;
  const { collection, owner, key } = change.name;
  const head = { v: STATE_VERSION, c: collection, o: owner, k: key, r: change.revision };
  const text = JSON.stringify(
    change.kind === "deleted"
      ? head
      : {
          ...head,
          e: change.expiresAt,
          b: change.bytes,
          ...(change.listed && { l: 1 }),
          d: Buffer.from(change.value).toString("base64"),
        },
  );
  return `${checksum(text)} ${text}\n`;
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}

/** Reads a line; nothing where it is damaged. Of a version that is not known, names and revisions are where they are in this one. */
function readLine(line: string): LoggedRecord | undefined {
  const text = line.slice(9);
  if (line[8] !== " " || line.slice(0, 8) !== checksum(text)) return undefined;
  const found = parseJsonTextOrNone(text);
  if (!isPlainObject(found)) return undefined;
  const { v: version, c: collection, o: owner, k: key, r: revision } = found;
  const { e: expiresAt, b: bytes, l: listed, d: data } = found;
  if (typeof collection !== "string" || typeof owner !== "string" || typeof key !== "string")
    return undefined;
  if (typeof revision !== "number") return undefined;
  const name = { collection, owner, key };
  if (version !== STATE_VERSION) return { kind: "foreign", name, revision, version, text };
  if (data === undefined) return { kind: "deleted", name, revision };
  if (typeof expiresAt !== "number" || typeof bytes !== "number" || typeof data !== "string")
    return undefined;
  const value = Buffer.from(data, "base64");
  return { kind: "record", name, revision, expiresAt, bytes, value, listed: listed === 1 };
}

function inUse(folder: string, pid: number): string {
  return `The state in ${folder} is in use by the process ${pid}: each gateway needs a folder of its own; several share a state with { "store": "nats" }.`;
}
