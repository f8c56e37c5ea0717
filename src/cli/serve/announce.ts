import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { viewSchema } from "../../core/schema/schema-view.ts";
import { safeLine, shellWord } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { APPROVALS_PATH } from "../../gateway/approvals/gateway-approvals.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { schemaOf } from "../../gateway/operation-json.ts";
import type { GatewayLogger, LogFields } from "../../gateway/serve/observe/logger.ts";
import { isAuthOn, servedPaths } from "../../gateway/serve/serve-settings.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { describeWeight, HEAVY_TOKENS, LIGHTER_TOOLS, type ToolWeight } from "../../gateway/tool-weight.ts";
import { OWNER_TOKEN } from "../inspect/owner-token.ts";
import type { Io } from "../io.ts";
import { sourceTable } from "../list/run-list.ts";
import { refusedLine, troubleLines } from "../list/source-troubles.ts";
import { createPastedCommand, type PastedCommand, sourceWords, spelledCommand } from "../pasted-command.ts";
import type { ReadTarget, SourceFlags } from "../session/session.ts";
import { createStyle } from "../terminal/style.ts";

interface Announcement {
  readonly io: Io;
  readonly flags: SourceFlags;
  readonly target: ReadTarget;
  readonly gateway: Gateway;
  /** Where it listens; nothing over stdio. */
  readonly url: string | undefined;
  readonly isInspected: boolean;
  /** What the tool list takes of a model's context; nothing where MCP is not served. */
  readonly weight: ToolWeight | undefined;
}

/** Says what is mounted from where, where it is served, and what to try next. */
export async function announce(announcement: Announcement): Promise<string> {
  const { io, target, gateway, url, weight } = announcement;
  const style = createStyle(io.stderr, io.env);
  const reports = gateway.reports();
  const operations = counted(countOf(reports), "operation");
  const next = nextCommands(announcement);
  const parts = [
    `${style.bold(`Waybill ${PACKAGE_VERSION}`)}: ${operations} of ${counted(reports.length, "source")}, from ${origin(io, target)}`,
    reports.length === 0 ? "" : await sourceTable(reports, { stream: io.stderr, env: io.env, indent: 2 }),
    [
      ...troubleLines(reports, createPastedCommand(io, announcement.flags), io.verbose),
      ...target.loaded.warnings,
      ...heavyLines(weight),
    ]
      .map((line) => `  ${style.yellow("!")} ${safeLine(line, 1_000)}`)
      .join("\n"),
    [
      url === undefined ? "  MCP over stdin and stdout" : places(announcement, url, style.cyan),
      ...(weight === undefined ? [] : [`  tool list ${describeWeight(weight)}`]),
      ...inspectorLines(announcement),
    ].join("\n"),
    next.length === 0
      ? ""
      : `${style.bold("Try in another terminal")}\n${next.map((line) => `  ${line}`).join("\n")}`,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n\n`;
}

/** What to do about a tool list that is too heavy for most models. */
function heavyLines(weight: ToolWeight | undefined): readonly string[] {
  if (weight === undefined || weight.tokens <= HEAVY_TOKENS) return [];
  return [`The tool list is heavy: ${describeWeight(weight)}. ${LIGHTER_TOOLS}`];
}

/** What a log says of the tool list; that it is too heavy for most models, where it is. */
export function logWeight(log: Pick<GatewayLogger, "info" | "warn">, weight: ToolWeight): void {
  const { tools, tokens, listTokens, isCatalogue } = weight;
  const fields = { tools, tokens, listTokens, catalogue: isCatalogue };
  if (tokens > HEAVY_TOKENS) log.warn("heavy tool list", { ...fields, fix: LIGHTER_TOOLS });
  else log.info("tool list", fields);
}

/** How to get the inspector where it is not served. */
function inspectorLines({ io, url, isInspected }: Announcement): readonly string[] {
  if (url === undefined || isInspected) return [];
  return [
    `  inspector off; "${spelledCommand(io)} serve --inspect" or "serve": { "inspect": true } turns it on`,
  ];
}

/** The same facts for programs, as the fields of one line of the log; the address comes last. */
export function servedFacts({
  target,
  gateway,
  url,
  isInspected,
}: Omit<Announcement, "io" | "flags" | "weight">): LogFields {
  const reports = gateway.reports();
  return {
    from: target.kind === "config" ? target.loaded.path : target.kind,
    operations: countOf(reports),
    sources: reports.map(({ name, kind, state, operations, offered }) => ({
      name,
      kind,
      state: state.status,
      operations,
      ...(offered !== operations && { offered }),
      ...(state.status === "down" && { reason: state.reason }),
    })),
    ...(url !== undefined && {
      paths: namedPaths({ target, gateway, isInspected }).map(([, path]) => path),
      url,
    }),
  };
}

function countOf(reports: readonly SourceReport[]): number {
  return reports.reduce((sum, { operations }) => sum + operations, 0);
}

function origin(io: Io, { kind, loaded, stateFile }: ReadTarget): string {
  if (kind === "embedded")
    return `the embedded default (no config found; "${spelledCommand(io)} init" writes one)\n  state is kept in ${stateFile}`;
  return kind === "target" ? "the command line" : safeLine(loaded.path ?? "a config", 500);
}

function places(announcement: Announcement, url: string, paint: (text: string) => string): string {
  return namedPaths(announcement)
    .map(([name, path]) => `  ${name.padEnd(10)}${paint(`${url}${path}`)}`)
    .join("\n");
}

/** What is served where, by the names that people are told. */
function namedPaths({
  target,
  gateway,
  isInspected,
}: Pick<Announcement, "target" | "gateway" | "isInspected">): readonly (readonly [string, string])[] {
  const { mcp, api, document, docs, metrics } = servedPaths(target.loaded.config.serve);
  const rows = [
    ["inspector", isInspected ? "/inspect" : undefined],
    ["MCP", mcp],
    ["HTTP", api],
    ["document", document],
    ["docs", docs],
    ["metrics", metrics],
    ["approvals", gateway.approvals.hasPage ? APPROVALS_PATH : undefined],
  ] as const;
  return rows.flatMap(([name, path]) => (path === undefined ? [] : [[name, path] as const]));
}

/** Command lines that work when they are pasted in another terminal of the same folder, after what has to be done before. */
function nextCommands(announcement: Announcement): readonly string[] {
  const { io, flags, target, gateway, url } = announcement;
  const { serve = {} } = target.loaded.config;
  const reached = serve.http === false ? undefined : url;
  const command = spelledCommand(io);
  const words = sourceWords(flags);
  const own = words === "" ? "" : ` ${words}`;
  const end = url === undefined ? [] : [`curl -s ${url}/health`];
  if (reached !== undefined && isAuthOn(serve.auth))
    return [`${command} list${own}`, ...end, ...withToken(announcement, `${command} list --url ${reached}`)];
  const from = reached === undefined ? own : ` --url ${reached}`;
  const [first] = [...gateway.executor.operations].filter(isHarmless).sort(byNearness);
  const [any] = gateway.executor.operations;
  const lines = [`${command} list${from}`];
  if (first !== undefined) lines.push(`${command} call ${shellWord(first.id)}${from}`);
  else if (any !== undefined) lines.push(`${command} describe ${shellWord(any.id)}${from}`);
  if (reached === undefined || first === undefined) return [...lines, ...end];
  const body = shellWord(JSON.stringify({ operation: first.id, input: {} }));
  return [...lines, `curl -s ${reached}/call -H 'content-type: application/json' -d ${body}`];
}

/** A line that asks the gateway itself: with the variable that a token comes from, else after what is to be set, which no line can show. */
function withToken({ io, target }: Announcement, line: string): readonly string[] {
  const { tokenVariables = new Map<string, string>(), config } = target.loaded;
  const known = [...tokenVariables.values()].find((name) => (io.env[name] ?? "") !== "");
  if (known !== undefined)
    return [known === "WAYBILL_TOKEN" ? line : `${line} --token-env ${shellWord(known)}`];
  const { tokens = {}, jwt } = config.serve?.auth ?? {};
  if (Object.hasOwn(tokens, OWNER_TOKEN))
    return ['# with WAYBILL_TOKEN set to what stands after "#token=" in the address of the inspector:', line];
  const holders = Object.keys(tokens).length > 0;
  const which =
    holders || jwt === undefined ? "a token of serve.auth.tokens" : "a token of serve.auth.jwt.issuer";
  return [`# with WAYBILL_TOKEN set to ${which}:`, line];
}

/** What might print something that is nobody else's business. */
const TELLING = /env|secret|token|config|password|credential|key|user|account/i;

/** Reads only, needs no input and no rights, ends, and shows nothing that should not be on a screen; tools of others only say that they do. */
function isHarmless(operation: AnyOperation): boolean {
  const { type, annotations, access, visibility, tier = "community", source = "local" } = operation;
  const isReading = type === "query" || (type === "mutation" && annotations?.readOnly === true);
  if (!isReading || access !== undefined || visibility === "internal" || tier !== "community") return false;
  if (source === "mcp" || TELLING.test(operation.id)) return false;
  return viewSchema(schemaOf(operation, "input")).required.size === 0;
}

/** Local ones first: they answer soonest. */
function byNearness(a: AnyOperation, b: AnyOperation): number {
  const rank = ({ source = "local" }: AnyOperation) => (source === "local" ? 0 : 1);
  return rank(a) - rank(b) || (a.id < b.id ? -1 : 1);
}

/** What is told of, and how. */
interface FollowOptions {
  readonly log: Pick<GatewayLogger, "info" | "warn">;
  /** Writes commands that are told. */
  readonly paste: PastedCommand;
}

/** Logs when sources come up, go down, appear and leave, and which of their tools are refused until they are approved. */
export function followSources(gateway: Gateway, { log, paste }: FollowOptions): () => void {
  let told = new Map<string, string>();
  const tellStates = (): void => {
    const now = new Map<string, string>();
    for (const { name, state, operations, offered, stderr } of gateway.reports()) {
      now.set(name, state.status);
      if (told.get(name) === state.status) continue;
      if (state.status === "up") {
        log.info("source up", { source: name, operations, ...(offered !== operations && { offered }) });
      }
      if (state.status === "down")
        log.warn("source down", {
          source: name,
          reason: state.reason,
          ...(stderr !== undefined && { stderr }),
        });
    }
    for (const name of told.keys()) if (!now.has(name)) log.info("source gone", { source: name });
    told = now;
  };
  const tellRefused = createRefusalReporter(gateway, { log, paste });
  const look = (): void => {
    tellStates();
    tellRefused();
  };
  look();
  const stops = [gateway.onSources(look), gateway.executor.onChange?.(tellRefused)];
  return () => {
    for (const stop of stops) stop?.();
  };
}

/** Tells of refused tools when they are others than the last time. */
function createRefusalReporter(gateway: Gateway, { log, paste }: FollowOptions): () => void {
  let told = new Map<string, string>();
  return () => {
    const now = new Map<string, string>();
    for (const report of gateway.reports()) {
      const line = report.state.status === "up" ? refusedLine(report, paste) : told.get(report.name);
      if (line === undefined) continue;
      now.set(report.name, line);
      if (told.get(report.name) !== line) log.warn(line, { source: report.name });
    }
    told = now;
  };
}
