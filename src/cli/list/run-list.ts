import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { isRefused } from "../../gateway/lock/changed-tools.ts";
import { operationJson } from "../../gateway/operation-json.ts";
import type { SourceReport, SourceState } from "../../gateway/sources/source.ts";
import { EXIT, type Io } from "../io.ts";
import { rememberNames } from "../name-cache.ts";
import { createPastedCommand } from "../pasted-command.ts";
import { openSession, type Session, type SourceFlags } from "../session/session.ts";
import { createStyle, type Style, toSafeJson } from "../terminal/style.ts";
import { type Cell, renderTable } from "../terminal/table.ts";
import { downLines, lateLines, troubleLines } from "./source-troubles.ts";

/** Flags of `waybill list`. */
export interface ListFlags extends SourceFlags {
  readonly sources?: boolean;
  readonly strict?: boolean;
  readonly json?: boolean;
  /** Milliseconds that each source has to come up. @default 30_000 */
  readonly timeout?: number;
}

/** Milliseconds that sources have to come up; those that take longer are left out. */
const SOURCES_MS = 30_000;

/** Runs `waybill list`. */
export async function runList(io: Io, filter: string | undefined, flags: ListFlags): Promise<number> {
  const { json, sources, timeout = SOURCES_MS } = flags;
  const session = await openSession(io, flags, {
    // Search looks at parameters too.
    whole: sources !== true && (json === true || isSearch(filter)),
    patienceMs: timeout,
  });
  try {
    if (flags.source === undefined) await rememberNames(io, flags, session);
    const reports = session.gateway.reports();
    if (flags.json) io.stdout.write(`${toSafeJson(await listJson(session, filter, flags), 2)}\n`);
    else {
      const text = flags.sources
        ? await sourceTable(reports, { stream: io.stdout, env: io.env })
        : await operationList(io, session, filter);
      if (text !== "") io.stdout.write(`${text}\n`);
      if (!io.quiet) for (const warning of session.warnings) say(io, warning);
    }
    for (const line of lateLines(reports, timeout)) say(io, line);
    // A reader who looks for an operation is told which source is down; what its process wrote is for those who look at sources.
    const told = filter === undefined || io.verbose ? reports : reports.map(withoutStderr);
    for (const line of troubleLines(told, createPastedCommand(io, flags), io.verbose)) say(io, line);
    const waiting = reports.some(({ login }) => login === "wanted");
    return flags.strict && (waiting || [...lateLines(reports, timeout), ...downLines(reports)].length > 0)
      ? EXIT.callError
      : EXIT.ok;
  } finally {
    await session.close();
  }
}

function withoutStderr({ stderr: _, ...report }: SourceReport): SourceReport {
  return report;
}

function say(io: Io, line: string): void {
  io.stderr.write(`waybill: ${safeLine(line, 1_000)}\n`);
}

async function listJson(session: Session, filter: string | undefined, flags: ListFlags): Promise<unknown> {
  const sources = session.gateway.reports();
  if (flags.sources) return { sources };
  const found = await filtered(session, filter);
  return {
    operations: found.map((operation) => {
      const known = operationJson(operation, sourceName(session, operation));
      return isRefusedNow(session, sources, operation) ? { ...known, refused: "changed" } : known;
    }),
    sources: sources.map(({ name, kind, state, operations }) => ({ name, kind, state, operations })),
  };
}

/** Where an operation comes from; everything of a gateway that was named does from that gateway, so there it is the namespace. */
export function sourceName({ gateway, isGateway }: Session, { id, namespace }: AnyOperation): string {
  return isGateway ? namespace : (gateway.sourceOf(id) ?? "");
}

/** Whether an operation is refused until it is approved, by what its source reports or a gateway that runs says. */
function isRefusedNow(
  { gateway }: Session,
  reports: readonly SourceReport[],
  operation: AnyOperation & { readonly refused?: unknown },
): boolean {
  const source = gateway.sourceOf(operation.id);
  const report = reports.find(({ name }) => name === source);
  return operation.refused === "changed" || isRefused(report, operation);
}

async function filtered(session: Session, filter: string | undefined): Promise<readonly AnyOperation[]> {
  // The owner's view: the person who runs the command may see what needs rights to be called.
  const all = [...session.gateway.executor.operations]
    .filter(({ visibility }) => visibility !== "internal")
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  if (filter === undefined || filter.trim() === "") return all;
  if (!isSearch(filter)) {
    const { matchesPattern } = await import("../../gateway/glob.ts");
    return all.filter(({ id }) => matchesPattern(filter, id));
  }
  const { OperationSearch } = await import("../../core/search/operation-search.ts");
  return await new OperationSearch().find(all, filter);
}

/** Whether operations are looked for by words. */
function isSearch(filter: string | undefined): boolean {
  return filter !== undefined && filter.trim() !== "" && !isPattern(filter);
}

/** A question may end with "?", but has more than one word. */
function isPattern(filter: string): boolean {
  return /[*?{]/.test(filter) && !/\s/.test(filter.trim());
}

async function operationList(io: Io, session: Session, filter: string | undefined): Promise<string> {
  const found = await filtered(session, filter);
  if (found.length === 0) {
    const what =
      filter === undefined ? "There are no operations." : `Nothing fits "${safeLine(filter, 80)}".`;
    if (!io.quiet) io.stderr.write(`waybill: ${what}\n`);
    return "";
  }
  const style = createStyle(io.stdout, io.env);
  const reports = session.gateway.reports();
  const rows = (isSearch(filter) ? found : inOrderOfSources(session, found)).map((operation) => {
    const mark = isRefusedNow(session, reports, operation) ? "[refused: changed since it was approved] " : "";
    const { id, type, description } = operation;
    const source = sourceName(session, operation);
    return [{ text: id, paint: style.cyan }, type, source, `${mark}${firstSentence(description)}`];
  });
  const head = ["OPERATION", "TYPE", "SOURCE", "DESCRIPTION"];
  return renderTable(rows, { head, stream: io.stdout, env: io.env, whole: 1 });
}

function inOrderOfSources({ gateway }: Session, found: readonly AnyOperation[]): readonly AnyOperation[] {
  const order = new Map(gateway.sources.map(({ name }, at) => [name, at]));
  const placed = found.map((operation) => {
    const at = order.get(gateway.sourceOf(operation.id) ?? "") ?? order.size;
    return { operation, at };
  });
  return placed.sort((a, b) => a.at - b.at).map(({ operation }) => operation);
}

/** What of a description fits in a list. */
function firstSentence(description: string): string {
  const [paragraph = ""] = description.trim().split(/\n\s*\n/, 1);
  return safeLine(paragraph, 300);
}

interface SourceTableOptions {
  readonly stream: NodeJS.WriteStream;
  readonly env: NodeJS.ProcessEnv;
  /** @default 0 */
  readonly indent?: number;
}

/** Writes a table of sources: how each is doing, of what kind it is, what it holds and where it is. */
export async function sourceTable(
  reports: readonly SourceReport[],
  { stream, env, indent = 0 }: SourceTableOptions,
): Promise<string> {
  const style = createStyle(stream, env);
  const rows = reports.map((report): readonly Cell[] => [
    report.name,
    report.login === "wanted" ? { text: "login", paint: style.yellow } : stateCell(report.state, style),
    report.kind,
    operationsCell(report),
    report.startMs === undefined ? "" : String(Math.round(report.startMs)),
    report.protocol ?? "",
    report.target,
  ]);
  const head = ["SOURCE", "STATE", "KIND", "OPERATIONS", "START MS", "PROTOCOL", "FROM"];
  return renderTable(rows, { head, stream, env, indent, whole: 1 });
}

/** After policies, and of how many where they leave some out. */
function operationsCell({ operations, offered }: SourceReport): string {
  return operations === offered ? String(operations) : `${operations} of ${offered}`;
}

function stateCell({ status }: SourceState, style: Style): Cell {
  switch (status) {
    case "up":
      return { text: status, paint: style.green };
    case "down":
      return { text: status, paint: style.red };
    case "connecting":
      return { text: status, paint: style.yellow };
    case "disabled":
    case "closed":
      return { text: status, paint: style.dim };
  }
}
