import { type FileHandle, open } from "node:fs/promises";
import { type AuditHead, auditFiles, FIRST_HASH, hashLine, parseRecord } from "./audit-file.ts";

/** One record as it was read. */
export type AuditRecord = NonNullable<ReturnType<typeof parseRecord>>;

/** What is wrong with a chain, and where. */
export interface AuditFault {
  readonly file: string;
  /** Counts lines of the file from 1. */
  readonly line: number;
  readonly problem: string;
}

/** What a look at a whole chain came to. */
export interface AuditReport {
  readonly records: number;
  readonly head: AuditHead;
  /** The first 100. */
  readonly faults: readonly AuditFault[];
  readonly notes: readonly AuditFault[];
}

const MOST_FAULTS = 100;

/** A line of an audit file; without a record where it is none. */
export interface AuditLine {
  readonly file: string;
  /** Counts lines of the file from 1. */
  readonly line: number;
  readonly hash: string;
  readonly record: AuditRecord | undefined;
}

/** Bytes of a line; a longer one is none of ours, and is read in parts. */
const MOST_LINE_BYTES = 1_048_576;

/** Reads every line of a chain, up to where it stands now: the file that is written is opened first, and may be set aside meanwhile. */
export async function* readAudit(path: string): AsyncGenerator<AuditLine> {
  const current = await open(path).catch(() => undefined);
  try {
    const written = await current?.stat();
    for (const file of (await auditFiles(path)).filter((name) => name !== path)) {
      const aside = await open(file);
      try {
        const { dev, ino } = await aside.stat();
        if (dev !== written?.dev || ino !== written.ino) yield* readFileLines(file, aside);
      } finally {
        await aside.close();
      }
    }
    if (current !== undefined) yield* readFileLines(path, current);
  } finally {
    await current?.close();
  }
}

async function* readFileLines(file: string, handle: FileHandle): AsyncGenerator<AuditLine> {
  let line = 0;
  for await (const bytes of linesOf(handle)) {
    line += 1;
    yield { file, line, hash: hashLine(bytes), record: parseRecord(bytes.toString("utf8")) };
  }
}

/** Only a line feed ends a line: texts in a record may hold what ends lines elsewhere. */
async function* linesOf(handle: FileHandle): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of handle.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      yield rest.subarray(0, end);
      rest = rest.subarray(end + 1);
    }
    if (rest.length > MOST_LINE_BYTES) {
      yield rest;
      rest = Buffer.alloc(0);
    }
  }
  if (rest.length > 0) yield rest;
}

/**
 * Checks that every record names the one before it, from the first one on, and that heads that were kept elsewhere are in the chain: a
 * head that is missing shows that the end was cut, or that all of it was written anew.
 */
export async function verifyAudit(path: string, heads: readonly AuditHead[] = []): Promise<AuditReport> {
  const faults: AuditFault[] = [];
  const notes: AuditFault[] = [];
  const fault = (file: string, line: number, problem: string): void => {
    if (faults.length < MOST_FAULTS) faults.push({ file, line, problem });
  };
  const note = ({ file, line }: AuditLine): void => {
    if (notes.length < MOST_FAULTS) notes.push({ file, line, problem: "was not written to its end" });
  };
  const wanted = new Map<number, Set<string>>();
  for (const { seq, hash } of heads) wanted.set(seq, (wanted.get(seq) ?? new Set()).add(hash));
  let head: AuditHead = { seq: 0, hash: FIRST_HASH };
  let records = 0;
  /** Lines since the last record. */
  let torn: AuditLine[] = [];
  for await (const each of readAudit(path)) {
    const { file, line, hash, record } = each;
    if (record === undefined) {
      // Of too many, the last one is the one that a record names.
      if (torn.length > MOST_FAULTS) torn.pop();
      torn.push(each);
      continue;
    }
    const { seq, prev } = record;
    const isNext = seq === head.seq + 1;
    const isAfterTorn =
      record["torn"] === true && prev === torn.at(-1)?.hash && record["after"] === head.hash;
    if (torn.length > 0 && isAfterTorn && isNext) {
      for (const part of torn) note(part);
    } else {
      for (const part of torn) fault(part.file, part.line, "is no record");
      if (!isNext) fault(file, line, `has the number ${seq} after ${head.seq}`);
      else if (prev !== head.hash) fault(file, line, "does not name the record before it");
    }
    torn = [];
    head = { seq, hash };
    records += 1;
    const known = wanted.get(seq);
    wanted.delete(seq);
    if (known !== undefined && (known.size > 1 || !known.has(hash)))
      fault(file, line, `is not the record ${seq} whose hash was kept`);
  }
  for (const part of torn) note(part);
  for (const seq of wanted.keys()) fault(path, 0, `has no record ${seq}, which was kept as a head`);
  return { records, head, faults, notes };
}
