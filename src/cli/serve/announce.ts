import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import type { LogFields } from "../../gateway/serve/observe/logger.ts";
import { isAuthOn } from "../../gateway/serve/serve-settings.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { membersOf, partsOf } from "../call/input-schema.ts";
import type { Io } from "../io.ts";
import { shellWord } from "../list/example-call.ts";
import { downLines, sourceTable } from "../list/source-table.ts";
import { sourceWords } from "../list/source-words.ts";
import type { ReadTarget, SourceFlags } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";
import { createStyle } from "../terminal/style.ts";

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
    [...downLines(reports), ...target.loaded.warnings]
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
    ...(url !== undefined && { paths: servedPaths(target, isInspected).map(([, path]) => path), url }),
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
  return servedPaths(target, isInspected)
    .map(([name, path]) => `  ${name.padEnd(10)}${paint(`${url}${path}`)}`)
    .join("\n");
}

function servedPaths(target: ReadTarget, isInspected: boolean): readonly (readonly [string, string])[] {
  const { mcp = true, http = true, metrics = true } = target.loaded.config.serve ?? {};
  const hasDocs = http !== false && (http === true || http.docs !== false);
  const rows: readonly (readonly [boolean, string, string])[] = [
    [isInspected, "inspector", "/inspect"],
    [mcp !== false, "MCP", "/mcp"],
    [http !== false, "HTTP", "/api"],
    [http !== false, "document", "/openapi.json"],
    [hasDocs, "docs", "/docs"],
    [metrics, "metrics", "/metrics"],
  ];
  return rows.filter(([isServed]) => isServed).map(([, name, path]) => [name, path] as const);
}

/** Three command lines that work when they are pasted in another terminal of the same folder. */
function nextCommands({ io, flags, target, gateway, url }: Announcement): readonly string[] {
  const command = spelledCommand(io);
  const { serve = {} } = target.loaded.config;
  const isReached = url !== undefined && serve.http !== false;
  const hasAuth = isAuthOn(serve.auth);
  const words = sourceWords(flags);
  const own = words === "" ? "" : ` ${words}`;
  const from = isReached && !hasAuth ? ` --url ${url}` : own;
  const [first] = [...gateway.executor.operations].filter(isHarmless).sort(byNearness);
  const [any] = gateway.executor.operations;
  const lines = [`${command} list${from}`];
  if (isReached && hasAuth)
    lines.push(`${command} list --url ${url} --token-env NAME  # NAME: the variable that holds a token`);
  else if (first !== undefined) lines.push(`${command} call ${shellWord(first.id)}${from}`);
  else if (any !== undefined) lines.push(`${command} describe ${shellWord(any.id)}${from}`);
  if (url === undefined) return lines;
  if (isReached && !hasAuth && first !== undefined) {
    const body = JSON.stringify({ operation: first.id, input: {} });
    lines.push(`curl -s ${url}/call -H 'content-type: application/json' -d ${shellWord(body)}`);
  } else lines.push(`curl -s ${url}/health`);
  return lines;
}

/** What might print something that is nobody else's business. */
const TELLING = /env|secret|token|config|password|credential|key|user|account/i;

/** Reads only, needs no input and no rights, ends, and shows nothing that should not be on a screen; tools of others only say that they do. */
function isHarmless(operation: AnyOperation): boolean {
  const { type, annotations, access, visibility, tier = "community", source = "local" } = operation;
  const isReading = type === "query" || (type === "mutation" && annotations?.readOnly === true);
  if (!isReading || access !== undefined || visibility === "internal" || tier !== "community") return false;
  if (source === "mcp" || TELLING.test(operation.id)) return false;
  const schema = schemaOf(operation, "input");
  return schema === undefined || membersOf(partsOf(schema, schema)).required.size === 0;
}

/** Local ones first: they answer soonest. */
function byNearness(a: AnyOperation, b: AnyOperation): number {
  const rank = ({ source = "local" }: AnyOperation) => (source === "local" ? 0 : 1);
  return rank(a) - rank(b) || (a.id < b.id ? -1 : 1);
}
