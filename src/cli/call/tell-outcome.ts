import type { ResponseEnvelope, SaidFacts } from "../../core/envelope/envelope.ts";
import { type CallError, detailsToSend, isCallError } from "../../core/errors/errors.ts";
import { quoteSaid, saidIn, withoutSaid } from "../../core/errors/source-words.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { headline } from "../../core/result/human-text.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { fieldName, issueText, mismatchText, type SchemaIssue } from "../../core/schema/schema-issue.ts";
import { type SchemaView, viewSchema } from "../../core/schema/schema-view.ts";
import { safeLine, safeText, shellWord } from "../../core/text/clean-text.ts";
import { counted, didYouMean, nearestNames } from "../../core/text/nearest-name.ts";
import { schemaOf } from "../../gateway/operation-json.ts";
import type { Io } from "../io.ts";
import { createPastedCommand } from "../pasted-command.ts";
import type { Session, SourceFlags } from "../session/session.ts";
import { toSafeJson } from "../terminal/style.ts";

/** Says that an operation answered with an error, and what it said to do about it. */
export function tellToolError(io: Io, envelope: ResponseEnvelope): void {
  const { code, message, said } = envelope.meta.waybill ?? {};
  const reason = message ?? said?.summary ?? textOf(envelope);
  const words = [code, reason].filter((word) => typeof word === "string" && word !== "");
  const lines = [
    `waybill: tool error${words.length > 0 ? `: ${safeLine(words.join(" "), 2_000)}` : ""}`,
    ...saidLines(said, reason),
  ];
  io.stderr.write(`${lines.join("\n")}\n`);
}

/** Says what an operation said about its result beyond the data, for people. */
export function tellSaid(io: Io, { meta }: ResponseEnvelope): void {
  const said = meta.waybill?.said;
  if (io.quiet || said === undefined) return;
  const { summary, status = "ok" } = said;
  const first = summary === undefined ? [] : [`waybill: ${safeLine(headline(status, summary), 600)}`];
  const lines = [...first, ...saidLines(said, summary)];
  if (lines.length > 0) io.stderr.write(`${lines.join("\n")}\n`);
}

/** Lines of what an operation said that are shown. */
const MOST_SAID = 20;

function saidLines(said: SaidFacts | undefined, told: string | undefined): readonly string[] {
  const { summary, details = [], suggestedAction, nextTool, nextSteps = [] } = said ?? {};
  const lines = [
    ...(summary === undefined || summary === told ? [] : [summary]),
    ...details,
    ...(suggestedAction === undefined ? [] : [`Suggestion: ${suggestedAction}`]),
    ...(nextTool === undefined ? [] : [`Next tool: ${nextTool}`]),
    ...nextSteps.map((step) => `- ${step}`),
  ];
  const left = lines.length - MOST_SAID;
  const shown = lines.slice(0, MOST_SAID).map((line) => `  ${safeLine(line, 500)}`);
  return left > 0 ? [...shown, `  and ${left} more`] : shown;
}

/** What an MCP server wrote for people, when it gave no message otherwise; a gateway passes it on as the data. */
function textOf({ data, meta }: ResponseEnvelope): string {
  const blocks: unknown = meta.source === "mcp" ? meta.content : meta.source === "http" ? data : undefined;
  if (!Array.isArray(blocks)) return "";
  return blocks
    .flatMap((block) => (isPlainObject(block) && block["type"] === "text" ? [block["text"]] : []))
    .filter((text) => typeof text === "string")
    .join(" ");
}

/** Members of an input that are called unknown. */
const MOST_UNKNOWN = 5;

/** Says which members of an input its schema does not name, where it lets them in; gives their keys. */
export function tellUnknown(
  io: Io,
  operation: AnyOperation,
  paths: readonly (readonly string[])[],
): ReadonlySet<string> {
  const schema = schemaOf(operation, "input");
  const unknown = schema === undefined || io.quiet ? [] : unknownMembers(paths, schema, "allowed");
  for (const { key, near } of unknown.slice(0, MOST_UNKNOWN)) {
    const what = `"${operation.id}" names no input "${key}"${didYouMean(near)} It is sent all the same.`;
    io.stderr.write(`waybill: ${safeLine(what, 500)}\n`);
  }
  return new Set(unknown.map(({ key }) => key));
}

/** Fields of an output that are named. */
const MOST_MISFITS = 3;

/** Says that the output is not what the operation promises, and where; the data is written all the same. */
export function tellMisfit(io: Io, { meta }: ResponseEnvelope): void {
  const { violations = [] } = meta.waybill ?? {};
  if (io.quiet || violations.length === 0) return;
  const lines = violations
    .slice(0, MOST_MISFITS)
    .map((issue) => `  ${safeLine(issueText(issue, "the output"), 500)}`);
  const left = violations.length - lines.length;
  if (left > 0) lines.push(`  and ${left} more`);
  io.stderr.write(`waybill: the output does not match its schema:\n${lines.join("\n")}\n`);
}

/** What is known of a call that failed. */
interface FailedCall {
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly flags: SourceFlags & { readonly json?: boolean; readonly all?: boolean };
  /** Members of the input that were said to be unknown already. */
  readonly told: ReadonlySet<string>;
  /** Whether a gateway in another process ran it. */
  readonly isRemote: boolean;
  readonly session: Pick<Session, "mask">;
  /** How many values or pages came before it failed. */
  readonly given: number;
}

/** Says why a call failed, with what is wrong in which field, and what to do. */
export function tellCallError(io: Io, error: CallError, call: FailedCall): void {
  if (call.flags.json) {
    // Programs get one line that they can read; it is no result, so it is not on stdout.
    io.stderr.write(`${toSafeJson({ error: error.toJSON() })}\n`);
    return;
  }
  const details = detailsToSend(error);
  const issues = isPlainObject(details) ? details["issues"] : undefined;
  const listed = Array.isArray(issues) ? issueLines(issues.slice(0, 20), error, call) : [];
  const lines = [
    `waybill: ${headlineOf(error, listed.length > 0, call)} (${safeLine(error.code, 80)})`,
    ...listed,
  ];
  const approval = approvalLines(details, call.isRemote);
  const others = error.code.startsWith("APPROVAL_") ? undefined : withoutSaid(details);
  lines.push(...approval);
  if (others !== undefined && !Array.isArray(issues)) lines.push(`  ${safeLine(toSafeJson(others), 1_000)}`);
  lines.push(...thrownLines(io, error, call));
  const said = saidIn(details);
  if (said !== undefined) lines.push(`  ${safeText(quoteSaid(said)).replaceAll("\n", "\n  ")}`);
  if (call.given > 0 && !isLate(error, call)) lines.push(`  Before that it gave ${givenWords(call)}.`);
  lines.push(...whatToDo(io, error, call));
  io.stderr.write(`${lines.join("\n")}\n`);
}

/** Says what is to know of a request for approval beyond its message: why it was denied, its page, and until when a gateway keeps it. */
function approvalLines(details: unknown, isKept: boolean): readonly string[] {
  const approval = isPlainObject(details) ? details["approval"] : undefined;
  if (!isPlainObject(approval) || typeof approval["id"] !== "string") return [];
  const { state, url, expiresAt, comment } = approval;
  const facts = [
    typeof comment === "string" ? `Why: ${comment}` : undefined,
    typeof url === "string" ? `Page: ${url}` : undefined,
    isKept && typeof expiresAt === "string"
      ? `${state === "denied" ? "Denied until" : "Waits until"}: ${expiresAt}`
      : undefined,
  ];
  return facts.flatMap((fact) => (fact === undefined ? [] : [`  ${safeLine(fact, 1_000)}`]));
}

/** Says how to learn what a handler in this process threw: it is for its author alone, who asks with `--verbose`. */
function thrownLines(
  io: Io,
  { code, cause }: CallError,
  { operation, isRemote, session }: FailedCall,
): readonly string[] {
  const isHandler = operation.source === undefined || operation.source === "local";
  if (!isHandler || code !== "EXECUTION_ERROR") return [];
  if (isRemote) return ["  The log of the gateway says what its handler threw."];
  if (cause === undefined) return [];
  if (!io.verbose) return ["  --verbose shows what the handler threw."];
  if (!(cause instanceof Error))
    return [`  The handler threw ${safeLine(session.mask(toSafeJson(cause)), 500)}.`];
  const { name, message, stack } = cause;
  const what = isCallError(cause) ? cause.code : name;
  const first = `  The handler threw ${safeLine(session.mask(`${what}: ${message}`), 1_000)}`;
  const frames = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return [first, ...frames.slice(0, MOST_FRAMES).map((line) => `    ${safeLine(line.trim(), 500)}`)];
}

/** Frames of a stack that are shown. */
const MOST_FRAMES = 10;

/** What came before the end is no failure. */
function givenWords({ given, flags }: FailedCall): string {
  return `${counted(given, flags.all ? "page" : "value")}, which ${given === 1 ? "is" : "are"} written`;
}

/** Whether it was answering when its time was over. */
function isLate({ code }: CallError, { given }: FailedCall): boolean {
  return code === "TIMEOUT" && given > 0;
}

function whatToDo(io: Io, error: CallError, call: FailedCall): readonly string[] {
  const { operation, flags } = call;
  const paste = createPastedCommand(io, flags);
  const shown = (words: string): string => `"${safeLine(paste(words), 1_000)}"`;
  if (error.code === "DEFINITION_CHANGED") {
    if (flags.url !== undefined) return ['  Where the gateway runs, "waybill lock" shows what changed.'];
    return [`  ${shown("lock")} shows what changed; ${shown("lock --approve")} approves it.`];
  }
  if (error.code === "APPROVAL_REQUIRED") {
    if (call.isRemote) return [`  ${shown("approvals")} shows what waits, to those who may approve it.`];
    return [`  A person can approve it where a gateway runs: start one with ${shown("serve")}.`];
  }
  if (error.correctable) return [`  ${shown(`describe ${shellWord(operation.id)}`)} shows what it takes.`];
  if (isLate(error, call)) return ["  --take ends it after so many, without a failure."];
  return error.retryable ? ["  The same call may work later."] : [];
}

/** What is wrong with the input, then members that nobody knows and nothing was said of so far. */
function issueLines(
  issues: readonly unknown[],
  { code }: CallError,
  { operation, input, told }: FailedCall,
): readonly string[] {
  const lines = issues.flatMap((issue) => issueLine(issue, operation));
  const schema = schemaOf(operation, "input");
  if (code !== "VALIDATION_ERROR" || schema === undefined) return lines;
  const listed = new Set(
    issues.flatMap((issue) => (isPlainObject(issue) ? [fieldName(String(issue["pointer"]), "")] : [])),
  );
  const unknown = unknownMembers(pathsIn(input), schema, "any")
    .filter(({ key }) => !told.has(key) && !listed.has(key))
    .slice(0, MOST_UNKNOWN);
  return [
    ...lines,
    ...unknown.map(({ key, near }) => `  ${safeLine(`${key} is not known${didYouMean(near, "")}`, 500)}`),
  ];
}

function issuesIn({ details }: CallError): readonly SchemaIssue[] {
  const issues = isPlainObject(details) ? details["issues"] : undefined;
  return Array.isArray(issues) ? (issues as readonly SchemaIssue[]) : [];
}

/** A message of several lines stays so, but none of them looks like one of ours; what is listed below it is not said twice. */
function headlineOf(error: CallError, hasList: boolean, call: FailedCall): string {
  const { message } = error;
  const { flags, operation } = call;
  if (isLate(error, call))
    return `"${safeLine(operation.id, 120)}" gave ${givenWords(call)}, and had not ended when its time was over.`;
  const isListed = hasList && message === mismatchText(operation.id, issuesIn(error));
  const said = isListed ? mismatchText(operation.id, []) : message;
  const { reason, value, advice = "" } = error.failure ?? {};
  const field = flags.openapi === undefined ? `openapi.${operation.namespace}.baseUrl` : "--base-url";
  const such = value === undefined ? "" : `, such as "${value}"`;
  const better = `Say where the API is with ${field}${such}.`;
  return safeText(reason === "no-address" ? said.replace(advice, () => better) : said)
    .trim()
    .replaceAll("\n", "\n  ");
}

function issueLine(issue: unknown, operation: AnyOperation): readonly string[] {
  if (!isPlainObject(issue)) return [];
  const { pointer, expected, found, message } = issue;
  if (typeof pointer !== "string" || typeof expected !== "string" || typeof found !== "string") return [];
  const field = fieldName(pointer, "");
  const schema = schemaOf(operation, "input");
  const [unknown] =
    schema === undefined || field === "" ? [] : unknownMembers([field.split(".")], schema, "any");
  const hint = didYouMean(unknown?.near, "");
  return [
    `  ${safeLine(`${issueText({ pointer, expected, found, ...(typeof message === "string" && { message }) }, "the input")}${hint}`, 500)}`,
  ];
}

/** A member that an input has and its schema does not name. */
interface UnknownMember {
  /** With dots. */
  readonly key: string;
  /** Names that may be meant, with dots, the nearest first. */
  readonly near: readonly string[];
}

/** Words that let members in which no `properties` name. */
const OPEN_WORDS = [
  "patternProperties",
  "propertyNames",
  "unevaluatedProperties",
  "dependentSchemas",
  "dependencies",
  "if",
  "then",
  "else",
  "$dynamicRef",
  "$recursiveRef",
] as const;

/** How closely a schema has to look at members for one to be unknown. */
type MemberRule = /** Others are let in without a word. */ "allowed" | "any";

/**
 * Finds the members on these paths that a schema with names of members does not name. Where its words let others in on purpose, none
 * is unknown; where it forbids them, they are for `any` alone, since the call says so itself.
 */
export function unknownMembers(
  paths: readonly (readonly string[])[],
  schema: JsonSchemaObject,
  rule: MemberRule,
): readonly UnknownMember[] {
  const found = new Map<string, UnknownMember>();
  for (const path of paths) {
    const unknown = firstUnknown(path, schema, rule);
    if (unknown !== undefined) found.set(unknown.key, unknown);
  }
  return [...found.values()];
}

function firstUnknown(
  path: readonly string[],
  schema: JsonSchemaObject,
  rule: MemberRule,
): UnknownMember | undefined {
  let view = viewSchema(schema);
  for (const [at, name] of path.entries()) {
    if (view.names.size === 0 || isOpen(view, rule)) return undefined;
    if (!view.has(name)) {
      const above = path.slice(0, at);
      const near = nearOf(name, view).map((other) => [...above, other].join("."));
      return { key: [...above, name].join("."), near };
    }
    view = view.member(name);
  }
  return undefined;
}

function isOpen({ parts }: SchemaView, rule: MemberRule): boolean {
  return parts.some((part) => {
    const { additionalProperties: others = true } = part;
    if (others !== true && (others !== false || rule === "allowed")) return true;
    return OPEN_WORDS.some((word) => Object.hasOwn(part, word));
  });
}

/** Near names of the same level, and the same name one level further down. */
function nearOf(name: string, view: SchemaView): readonly string[] {
  const names = [...view.names];
  const inside = names.filter((other) => view.member(other).has(name));
  const near = inside.length > 0 ? inside.map((other) => `${other}.${name}`) : nearestNames(name, names);
  return near.slice(0, 2);
}

/** The paths to the members of an input, as far as the schema may have something to say of them. */
function pathsIn(input: unknown, depth = 4): readonly (readonly string[])[] {
  if (!isPlainObject(input) || depth === 0) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const below = isObject(value) ? pathsIn(value, depth - 1) : [];
    return below.length === 0 ? [[name]] : below.map((path) => [name, ...path]);
  });
}
