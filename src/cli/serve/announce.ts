import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { LogFields } from "../../gateway/serve/observe/logger.ts";
import { servedPaths } from "../../gateway/serve/served-paths.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import type { Io } from "../io.ts";
import { sourceTable } from "../list/source-table.ts";
import { troubleLines } from "../list/source-troubles.ts";
import { createPastedCommand } from "../pasted-command.ts";
import type { ReadTarget, SourceFlags } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";
import { createStyle } from "../terminal/style.ts";
import { nextCommands } from "./next-commands.ts";

/** What is announced. */
export interface Announcement {
  readonly io: Io;
  readonly flags: SourceFlags;
  readonly target: ReadTarget;
  readonly gateway: Gateway;
  /** Where it listens; nothing over stdio. */
  readonly url: string | undefined;
  readonly isInspected: boolean;
}

/** Says what is mounted from where, where it is served, and what to try next. */
export async function announce(announcement: Announcement): Promise<string> {
  const { io, target, gateway, url } = announcement;
  const style = createStyle(io.stderr, io.env);
  const reports = gateway.reports();
  const operations = counted(countOf(reports), "operation");
  const next = nextCommands(announcement);
  const parts = [
    `${style.bold(`Waybill ${PACKAGE_VERSION}`)}: ${operations} of ${counted(reports.length, "source")}, from ${origin(io, target)}`,
    reports.length === 0 ? "" : await sourceTable(io, reports, io.stderr, 2),
    [...troubleLines(reports, createPastedCommand(io, announcement.flags)), ...target.loaded.warnings]
      .map((line) => `  ${style.yellow("!")} ${safeLine(line, 1_000)}`)
      .join("\n"),
    url === undefined ? "  MCP over stdin and stdout" : places(announcement, url, style.cyan),
    next.length === 0
      ? ""
      : `${style.bold("Try in another terminal")}\n${next.map((line) => `  ${line}`).join("\n")}`,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n\n`;
}

/** The same facts for programs, as the fields of one line of the log; the address comes last. */
export function servedFacts({
  target,
  gateway,
  url,
  isInspected,
}: Omit<Announcement, "io" | "flags">): LogFields {
  const reports = gateway.reports();
  return {
    from: target.kind === "config" ? target.loaded.path : target.kind,
    operations: countOf(reports),
    sources: reports.map(({ name, kind, state, operations }) => ({
      name,
      kind,
      state: state.status,
      operations,
      ...(state.status === "down" && { reason: state.reason }),
    })),
    ...(url !== undefined && { paths: namedPaths(target, isInspected).map(([, path]) => path), url }),
  };
}

function countOf(reports: readonly SourceReport[]): number {
  return reports.reduce((sum, { operations }) => sum + operations, 0);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function origin(io: Io, { kind, loaded, stateFile }: ReadTarget): string {
  if (kind === "embedded")
    return `the embedded default (no config found; "${spelledCommand(io)} init" writes one)\n  state is kept in ${stateFile}`;
  return kind === "target" ? "the command line" : safeLine(loaded.path ?? "a config", 500);
}

function places({ target, isInspected }: Announcement, url: string, paint: (text: string) => string): string {
  return namedPaths(target, isInspected)
    .map(([name, path]) => `  ${name.padEnd(10)}${paint(`${url}${path}`)}`)
    .join("\n");
}

/** What is served where, by the names that people are told. */
function namedPaths(target: ReadTarget, isInspected: boolean): readonly (readonly [string, string])[] {
  const { mcp, api, document, docs, metrics } = servedPaths(target.loaded.config.serve);
  const rows = [
    ["inspector", isInspected ? "/inspect" : undefined],
    ["MCP", mcp],
    ["HTTP", api],
    ["document", document],
    ["docs", docs],
    ["metrics", metrics],
  ] as const;
  return rows.flatMap(([name, path]) => (path === undefined ? [] : [[name, path] as const]));
}
