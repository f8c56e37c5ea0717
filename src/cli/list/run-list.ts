import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { operationJson } from "../../gateway/operation-json.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { EXIT, type Io } from "../io.ts";
import { rememberNames } from "../name-cache.ts";
import { createPastedCommand } from "../pasted-command.ts";
import { openSession, type Session, type SourceFlags } from "../session.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { createStyle } from "../terminal/style.ts";
import { renderTable } from "../terminal/table.ts";
import { isRefused } from "./refused-tools.ts";
import { sourceTable } from "./source-table.ts";
import { downLines, troubleLines } from "./source-troubles.ts";

/** Flags of `waybill list`. */
export interface ListFlags extends SourceFlags {
  readonly sources?: boolean;
  readonly strict?: boolean;
  readonly json?: boolean;
}

/** Runs `waybill list`. */
export async function runList(io: Io, filter: string | undefined, flags: ListFlags): Promise<number> {
  const session = await openSession(io, flags);
  try {
    await rememberNames(io, flags, session);
    const reports = session.gateway.reports();
    if (flags.json) io.stdout.write(`${toSafeJson(await listJson(session, filter, flags), 2)}\n`);
    else {
      const text = flags.sources
        ? await sourceTable(io, reports, io.stdout)
        : await operationList(io, session, filter);
      if (text !== "") io.stdout.write(`${text}\n`);
      if (!io.quiet) for (const warning of session.loaded.warnings) say(io, warning);
    }
    for (const line of troubleLines(reports, createPastedCommand(io, flags))) say(io, line);
    return flags.strict && downLines(reports).length > 0 ? EXIT.callError : EXIT.ok;
  } finally {
    await session.close();
  }
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
      const refused = isRefused(reportOf(session, sources, operation), operation);
      return refused ? { ...known, refused: "changed" } : known;
    }),
    sources: sources.map(({ name, kind, state, operations }) => ({ name, kind, state, operations })),
  };
}

/** Where an operation comes from; everything of a gateway that was named does from that gateway, so there it is the namespace. */
export function sourceName({ gateway, isGateway }: Session, { id, namespace }: AnyOperation): string {
  return isGateway ? namespace : (gateway.sourceOf(id) ?? "");
}

function reportOf(
  { gateway }: Session,
  reports: readonly SourceReport[],
  { id }: AnyOperation,
): SourceReport | undefined {
  const source = gateway.sourceOf(id);
  return reports.find(({ name }) => name === source);
}

async function filtered(session: Session, filter: string | undefined): Promise<readonly AnyOperation[]> {
  // The owner's view: whoever runs the command may see what needs rights to be called.
  const all = [...session.gateway.executor.operations]
    .filter(({ visibility }) => visibility !== "internal")
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  if (filter === undefined || filter.trim() === "") return all;
  if (/[*?{]/.test(filter)) {
    const { matchesPattern } = await import("../../gateway/glob.ts");
    return all.filter(({ id }) => matchesPattern(filter, id));
  }
  const words = filter.toLowerCase().split(/\s+/);
  return all.filter(({ id, title = "", description }) => {
    const text = `${id} ${title} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
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
  const rows = inOrderOfSources(session, found).map((operation) => {
    const refused = isRefused(reportOf(session, reports, operation), operation);
    const mark = refused ? "[refused: changed since it was approved] " : "";
    const { id, type, description } = operation;
    const source = sourceName(session, operation);
    return [{ text: id, paint: style.cyan }, type, source, `${mark}${firstSentence(description)}`];
  });
  const head = ["OPERATION", "TYPE", "SOURCE", "DESCRIPTION"];
  return renderTable(rows, { head, stream: io.stdout, env: io.env });
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
