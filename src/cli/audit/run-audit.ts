import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { type AuditFields, type AuditHead, auditFiles, FIRST_HASH } from "../../gateway/audit/audit-file.ts";
import { auditPath } from "../../gateway/audit/audit-trail.ts";
import {
  type AuditRecord,
  type AuditReport,
  readAudit,
  verifyAudit,
} from "../../gateway/audit/verify-audit.ts";
import { matchesPattern } from "../../gateway/glob.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { readTarget } from "../session/session.ts";
import { toSafeJson, writeOut } from "../terminal/style.ts";
import { renderTable } from "../terminal/table.ts";

/** Flags of `waybill audit`. */
export interface AuditFlags {
  readonly config?: string | undefined;
  /** The file itself, in place of that of a config. */
  readonly file?: string | undefined;
  readonly json?: boolean | undefined;
  readonly subject?: string | undefined;
  /** A pattern of ids. */
  readonly operation?: string | undefined;
  readonly source?: string | undefined;
  readonly outcome?: string | undefined;
  /** Who issued what the caller was recognised by. */
  readonly issuer?: string | undefined;
  /** The account at the source that a call was made as. */
  readonly as?: string | undefined;
  /** Who approved or denied a call. */
  readonly approver?: string | undefined;
  /** Calls in whose results a guard found something. */
  readonly found?: boolean | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** How many of the last ones are shown. @default 50 */
  readonly last?: number | undefined;
  /** Heads that were kept elsewhere, as `seq:hash`. */
  readonly head?: readonly string[] | undefined;
  /** A log in JSON of the gateway, whose heads are checked. */
  readonly log?: string | undefined;
}

const LAST = 50;

/** Runs `waybill audit`: the last records that fit. */
export async function runAudit(io: Io, flags: AuditFlags): Promise<number> {
  const path = await placeOf(io, flags);
  const { last = LAST } = flags;
  const records: AuditRecord[] = [];
  let left = 0;
  for await (const { record } of readAudit(path)) {
    if (record === undefined || !fits(record, flags)) continue;
    records.push(record);
    if (records.length <= last) continue;
    records.shift();
    left += 1;
  }
  if (flags.json) {
    await writeOut(io, records.map((record) => `${toSafeJson(record)}\n`).join(""));
    return EXIT.ok;
  }
  if (records.length === 0) {
    io.stderr.write("waybill: no record fits.\n");
    return EXIT.ok;
  }
  const shown = COLUMNS.filter(
    ({ isUsual, text }) => isUsual || records.some((record) => text(record) !== ""),
  );
  const head = shown.map(({ name }) => name);
  const rows = records.map((record) => shown.map(({ text }) => text(record)));
  await writeOut(io, `${renderTable(rows, { head, stream: io.stdout, env: io.env })}\n`);
  if (left > 0 && !io.quiet)
    io.stderr.write(
      `waybill: ${counted(left, "earlier record")} fit too; --last ${last + left} shows them.\n`,
    );
  return EXIT.ok;
}

interface Column {
  readonly name: string;
  /** Whether it is there for every list; others are where a record has something for them. */
  readonly isUsual: boolean;
  text(record: AuditRecord): string;
}

const COLUMNS: readonly Column[] = [
  usual("time", (record) => textOf(record, "time")),
  usual("who", (record) => textOf(record, "subject") || "-"),
  rare("issuer", (record) => textOf(record, "issuer")),
  usual("by", (record) => textOf(record, "entry") || "-"),
  usual("operation", (record) => {
    const place = [textOf(record, "source"), textOf(record, "name")].filter(Boolean).join(" ");
    return textOf(record, "operation") || place || textOf(record, "event");
  }),
  usual("outcome", (record) => [textOf(record, "outcome"), textOf(record, "code")].filter(Boolean).join(" ")),
  usual("ms", (record) => textOf(record, "durationMs")),
  rare("as", (record) => {
    const upstream = noteOf(record, "upstream");
    return [textOf(upstream, "as"), textOf(upstream, "subject"), textOf(upstream, "grant")]
      .filter(Boolean)
      .join(" ");
  }),
  rare("approval", (record) => {
    const approval = noteOf(record, "approval");
    return [textOf(approval, "decision"), textOf(approval, "by")].filter(Boolean).join(" by ");
  }),
  usual("found", (record) => {
    const count = textOf(record, "findings");
    return count === "" ? "" : [count, ...kindsOf(record)].join(" ");
  }),
];

function usual(name: string, text: Column["text"]): Column {
  return { name, isUsual: true, text };
}

function rare(name: string, text: Column["text"]): Column {
  return { name, isUsual: false, text };
}

/** A part of a record; records may be of any version, and of anybody. */
function noteOf(record: AuditRecord, name: string): AuditFields {
  const note = record[name];
  return isPlainObject(note) ? note : {};
}

function kindsOf({ marked }: AuditRecord): readonly string[] {
  const kinds = Array.isArray(marked)
    ? marked.map((one: unknown) => (isPlainObject(one) ? one["kind"] : ""))
    : [];
  return [...new Set(kinds.filter((kind) => typeof kind === "string" && kind !== ""))] as string[];
}

/** Runs `waybill audit verify`; exits with 1 where something is wrong. */
export async function runAuditVerify(io: Io, flags: AuditFlags): Promise<number> {
  const path = await placeOf(io, flags);
  const heads = [
    ...(flags.head ?? []).map(readHead),
    ...(flags.log === undefined ? [] : await headsIn(resolve(io.cwd, flags.log))),
  ];
  const report = await verifyAudit(path, heads);
  if (flags.json) await writeOut(io, `${toSafeJson({ ...report, isWhole: report.faults.length === 0 })}\n`);
  else await writeOut(io, reportText(report, heads.length));
  return report.faults.length === 0 ? EXIT.ok : EXIT.toolError;
}

function reportText({ records, head, faults, notes }: AuditReport, heads: number): string {
  const place = ({ file, line, problem }: AuditReport["faults"][number]): string =>
    `${safeLine(file)}${line > 0 ? `:${line}` : ""} ${problem}`;
  const lines = [
    ...faults.map((fault) => `broken  ${place(fault)}`),
    ...notes.map((note) => `note    ${place(note)}`),
    faults.length > 0
      ? `${counted(records, "record")}; the chain is broken in ${counted(faults.length, "place")}.`
      : `${counted(records, "record")}, each names the one before it${heads > 0 ? `; ${counted(heads, "kept head")} found` : ""}.`,
    head.hash === FIRST_HASH ? "" : `head    ${head.seq}:${head.hash}`,
  ];
  return `${lines.filter((line) => line !== "").join("\n")}\n`;
}

async function placeOf(io: Io, { config, file }: AuditFlags): Promise<string> {
  const path = file === undefined ? await configuredPath(io, config) : resolve(io.cwd, file);
  const files = await auditFiles(path).catch(() => []);
  if (files.length === 0)
    throw new CommandError(
      `There is no audit file "${safeLine(path)}"; it is made when a gateway with "audit" runs.`,
    );
  return path;
}

async function configuredPath(io: Io, config: string | undefined): Promise<string> {
  const target = await readTarget(io, { config });
  try {
    const path = auditPath(target.loaded);
    if (path !== undefined) return path;
  } finally {
    await target.close();
  }
  throw new CommandError(
    'The config has no audit file; write "audit": { "file": "audit.jsonl" } into it, or name a file with --file.',
  );
}

function fits(record: AuditRecord, flags: AuditFlags): boolean {
  const { subject, operation, source, outcome, issuer, approver, found, since, until } = flags;
  const time = Date.parse(textOf(record, "time"));
  return (
    (subject === undefined || record["subject"] === subject) &&
    (source === undefined || record["source"] === source) &&
    (outcome === undefined || record["outcome"] === outcome) &&
    (issuer === undefined || record["issuer"] === issuer) &&
    (flags.as === undefined || noteOf(record, "upstream")["subject"] === flags.as) &&
    (approver === undefined || noteOf(record, "approval")["by"] === approver) &&
    (found !== true || textOf(record, "findings") !== "") &&
    (operation === undefined || matchesPattern(operation, textOf(record, "operation"))) &&
    (since === undefined || time >= since.getTime()) &&
    (until === undefined || time < until.getTime())
  );
}

function textOf(record: AuditFields, field: string): string {
  const value = record[field];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function readHead(text: string): AuditHead {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? [];
  if (seq === undefined || hash === undefined) {
    throw new CommandError(
      `--head must be a number and a hash, such as 1200:9f86d0…, as "audit head" in the log says them; it is "${safeLine(text, 80)}".`,
    );
  }
  return { seq: Number(seq), hash };
}

/** The heads that a log in JSON tells of. */
async function headsIn(path: string): Promise<readonly AuditHead[]> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new CommandError(`The log "${safeLine(path)}" cannot be read.`, EXIT.usage, { cause });
  });
  const heads = text.split("\n").flatMap((line) => {
    const { event, seq, head } = line.includes('"audit head"') ? parsed(line) : {};
    return event === "audit" && typeof seq === "number" && typeof head === "string"
      ? [{ seq, hash: head }]
      : [];
  });
  if (heads.length === 0)
    throw new CommandError(`The log "${safeLine(path)}" tells of no audit head; is it the log in JSON?`);
  return heads;
}

function parsed(line: string): { readonly event?: unknown; readonly seq?: unknown; readonly head?: unknown } {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}
