import { safeLine } from "../../core/text/safe-text.ts";
import { counted } from "../terminal/counted.ts";
import { createStyle, type Style } from "../terminal/style.ts";
import type { Check, CheckReport, CheckStatus } from "./check-report.ts";

/** How a report is written for people. */
export interface ReportStyle {
  readonly stream: { readonly isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Lists what passed and what was skipped as well. */
  readonly verbose: boolean;
  readonly strict: boolean;
}

const MARKS: Readonly<Record<CheckStatus, string>> = {
  fail: "FAIL",
  warn: "warn",
  skip: "skip",
  pass: "pass",
};
/** Checks of one kind that are shown one by one. */
const SHOWN_EACH = 10;

/** Writes a report for people: failures first, then warnings, each with what to do; the rest is counted. */
export function toReportText(report: CheckReport, { stream, env, verbose, strict }: ReportStyle): string {
  const style = createStyle(stream, env);
  const { name, version, protocol, target, kind, checks } = report;
  const what = [name, version].filter(Boolean).join(" ");
  const facts = [kind === "mcp" ? "MCP server" : "OpenAPI document", what, protocol && `MCP ${protocol}`];
  const lines = [`${style.bold(safeLine(target))}  ${style.dim(facts.filter(Boolean).join(", "))}`, ""];
  const shown: readonly CheckStatus[] = verbose ? ["fail", "warn", "skip", "pass"] : ["fail", "warn"];
  for (const status of shown) {
    const some = checks.filter((check) => check.status === status);
    if (some.length > 0) lines.push(...toGroups(some, style, verbose), "");
  }
  if (!verbose) lines.push(...toSkipped(checks, style));
  lines.push(toSummary(report, style, strict));
  return `${lines.join("\n")}\n`;
}

function toGroups(checks: readonly Check[], style: Style, verbose: boolean): string[] {
  const groups = new Map<string, Check[]>();
  for (const check of checks) groups.set(check.id, [...(groups.get(check.id) ?? []), check]);
  return [...groups.values()].flatMap((group) => toGroup(group, style, verbose));
}

function toGroup(group: readonly Check[], style: Style, verbose: boolean): string[] {
  const [first] = group;
  if (first === undefined) return [];
  const { status, id, title } = first;
  const lines = [`${paint(status, style)(MARKS[status])}  ${title}  ${style.dim(id)}`];
  const shown = verbose ? group : group.slice(0, SHOWN_EACH);
  for (const { subject, message, evidence } of shown) {
    lines.push(`      ${subject === "" ? "" : `${style.bold(subject)}: `}${message}`);
    if (evidence !== undefined) lines.push(`        ${style.dim(`seen: ${safeLine(evidence, 200)}`)}`);
  }
  const rest = group.length - shown.length;
  if (rest > 0) lines.push(`      … and ${rest} more (--verbose shows all)`);
  for (const fix of new Set(group.map((check) => check.fix))) {
    if (fix !== undefined) lines.push(`      ${style.cyan("fix:")} ${fix}`);
  }
  return lines;
}

/** What was not looked at, by reason and by name: nobody should take it for looked at. */
function toSkipped(checks: readonly Check[], style: Style): string[] {
  const reasons = new Map<string, string[]>();
  for (const { status, message, subject } of checks) {
    if (status === "skip") reasons.set(message, [...(reasons.get(message) ?? []), subject]);
  }
  const most = [...reasons].sort((a, b) => b[1].length - a[1].length).slice(0, 5);
  const lines = most.map(([reason, subjects]) => style.dim(`skip  ${namesOf(subjects)}${reason}`));
  const rest = reasons.size - most.length;
  if (rest > 0) lines.push(style.dim(`skip  … and ${counted(rest, "other reason")} (--verbose shows all)`));
  return lines.length === 0 ? [] : [...lines, ""];
}

/** Names of what was skipped that are shown with one reason. */
const SHOWN_NAMES = 3;

function namesOf(subjects: readonly string[]): string {
  const named = subjects.filter((subject) => subject !== "");
  if (named.length === 0) return subjects.length > 1 ? `${subjects.length} × ` : "";
  const left = subjects.length - Math.min(named.length, SHOWN_NAMES);
  return `${named.slice(0, SHOWN_NAMES).join(", ")}${left > 0 ? ` and ${left} more` : ""}: `;
}

function toSummary(report: CheckReport, style: Style, strict: boolean): string {
  const { counts, omitted, reachable, notCalled } = report;
  const { pass, warn, fail, skip } = counts;
  const isBad = fail > 0 || (strict && warn > 0);
  const called =
    notCalled === undefined ? "keeps its word" : `not called (${notCalled}); the document reads well`;
  const verdict = !reachable ? "cannot be reached" : isBad ? "does not keep its word" : called;
  const numbers = `${fail} failed, ${warn} warned, ${pass} passed, ${skip} skipped`;
  const left = omitted > 0 ? `; ${counted(omitted, "check is", "checks are")} not listed` : "";
  const tone = isBad || !reachable ? style.red : notCalled === undefined ? style.green : style.yellow;
  return `${tone(verdict)}: ${numbers}${left}`;
}

function paint(status: CheckStatus, style: Style): (text: string) => string {
  return { fail: style.red, warn: style.yellow, skip: style.dim, pass: style.green }[status];
}
