import { safeLine } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { truncateText } from "../../core/text/truncate-text.ts";
import { findHunks, type TextHunk, type ToolDifference } from "../../gateway/lock/readable-diff.ts";
import { createStyle, type Style } from "../terminal/style.ts";
import type { ServerLockState, ToolState } from "./lock-state.ts";

/** How the state of locks is written for people. */
interface LockStyle {
  readonly stream: { readonly isTTY?: boolean };
  readonly env: NodeJS.ProcessEnv;
  /** Said at the end, with what was approved. @default neither is said */
  readonly lockFile?: string | undefined;
  readonly approved?: ReadonlyMap<string, readonly ToolState[]> | undefined;
  /** How this command is started. @default waybill */
  readonly command?: string | undefined;
  /** Nothing is cut. @default long lists and texts are */
  readonly all?: boolean | undefined;
}

/** New tools of a server of which more than the name is shown. */
const MOST_NEW = 5;

/** Places that are shown of one tool: of a new one there is nothing to compare. */
const MOST_PLACES = { new: 4, changed: 20 } as const;

/** Servers with how many tools are which way, then tools that are not as approved: those that changed first, with what is different. */
export function toLockText(
  states: readonly ServerLockState[],
  { stream, env, lockFile, approved, command = "waybill", all = false }: LockStyle,
): string {
  const style = createStyle(stream, env);
  const how = { style, all };
  if (states.length === 0) return "There are no MCP servers to lock.\n";
  const details = states.filter(isOpen).flatMap((state) => toDetails(state, how));
  const lines = [...states.map((state) => toHead(state, style)), "", ...details];
  for (const [server, tools] of approved ?? []) lines.push(...toApprovedLines(server, tools, style));
  if (lockFile !== undefined) lines.push(toEnd(states, { lockFile: safeLine(lockFile), approved, command }));
  return `${lines.join("\n")}\n`;
}

/** Every one of them, with what it was before. */
function toApprovedLines(server: string, tools: readonly ToolState[], style: Style): string[] {
  return [
    `${style.green("approved")}  ${counted(tools.length, "tool")} of ${server}:`,
    ...tools.map(({ tool, state }) => `  ${paintOf(state, style)(state.padEnd(8))}  ${tool}`),
  ];
}

function paintOf(state: ToolState["state"], style: Style): (text: string) => string {
  return { approved: style.green, new: style.yellow, changed: style.red, gone: style.dim }[state];
}

function isOpen({ tools }: ServerLockState): boolean {
  return tools.some(({ state }) => state !== "approved");
}

function toHead({ server, reachable, reason = "", tools }: ServerLockState, style: Style): string {
  if (!reachable) return `${style.bold(server)}  ${style.red("cannot be reached")}: ${reason}`;
  const count = (kind: ToolState["state"]) => tools.filter(({ state }) => state === kind).length;
  const kinds = ["approved", "new", "changed", "gone"] as const;
  const counts = kinds.filter((kind) => count(kind) > 0).map((kind) => `${count(kind)} ${kind}`);
  return `${style.bold(server)}  ${counts.join(", ") || "no tools"}`;
}

function toDetails({ server, tools }: ServerLockState, how: DifferenceStyle): string[] {
  const some = (kind: ToolState["state"]) => tools.filter(({ state }) => state === kind);
  const fresh = some("new");
  const shown = how.all ? fresh : fresh.slice(0, MOST_NEW);
  const names = fresh.slice(shown.length).map(({ tool }) => tool);
  const rest = `  … and ${names.length} more new: ${names.join(", ")} (--all shows what they say)`;
  return [
    how.style.bold(server),
    ...[...some("changed"), ...shown].flatMap((tool) => toTool(tool, how)),
    ...(names.length > 0 ? [rest] : []),
    ...some("gone").flatMap((tool) => toTool(tool, how)),
    "",
  ];
}

function toTool({ tool, state, diff }: ToolState, how: DifferenceStyle): string[] {
  const { style, all } = how;
  const paint = paintOf(state, style);
  const note = state === "gone" ? "  it was approved, and is not listed any more" : "";
  const most = all ? diff.length : MOST_PLACES[state === "new" ? "new" : "changed"];
  const left = diff.slice(most).map(({ path }) => path);
  const more = `      … and ${left.length === 1 ? "1 more place" : `${left.length} more places`}: ${safeLine(left.join(", "), 200)} (--all shows them)`;
  return [
    `  ${paint(state.padEnd(8))}  ${tool}${style.dim(note)}`,
    ...diff.slice(0, most).flatMap((place) => toDifferenceLines(place, how)),
    ...(left.length > 0 ? [more] : []),
  ];
}

function toEnd(
  states: readonly ServerLockState[],
  { lockFile, approved, command }: Pick<LockStyle, "lockFile" | "approved" | "command">,
): string {
  const open = states
    .flatMap(({ tools }) => tools)
    .filter(({ state }) => state === "new" || state === "changed");
  if (open.length > 0)
    return `${counted(open.length, "tool")} ${open.length === 1 ? "is" : "are"} not approved; "${command} lock --approve" approves ${open.length === 1 ? "it" : "them"}.`;
  if (states.some(({ reachable }) => !reachable)) return "What cannot be reached was not compared.";
  return approved === undefined ? `All tools are as approved in ${lockFile}.` : `Written to ${lockFile}.`;
}

/** Characters of one side that are shown in one piece; of longer ones, the places where they differ. */
const WHOLE = 300;

/** Places within one text that are shown. */
const MOST_HUNKS = 20;

/** How differences are written. */
export interface DifferenceStyle {
  readonly style: Style;
  /** Nothing is cut. */
  readonly all: boolean;
}

/** Writes one place of a definition: what was there, and what is. Whatever is left out is counted. */
function toDifferenceLines({ path, before, after }: ToolDifference, how: DifferenceStyle): string[] {
  const { style, all } = how;
  const head = `      ${style.dim(path)}`;
  if (before === undefined || after === undefined) {
    return [head, ...toSide("-", before, how), ...toSide("+", after, how)];
  }
  if (before === after) return [head, "        differs in a secret, which is not shown"];
  if (before.length <= WHOLE && after.length <= WHOLE) {
    return [head, ...toSide("-", before, how), ...toSide("+", after, how)];
  }
  const hunks = findHunks(before, after);
  const shown = all ? hunks : hunks.slice(0, MOST_HUNKS);
  const rest = hunks.length - shown.length;
  return [
    `${head}  ${style.dim(`${hunks.length === 1 ? "1 place" : `${hunks.length} places`} in a long text`)}`,
    ...shown.flatMap((hunk) => toHunkLines(hunk, how)),
    ...(rest > 0 ? [`        … and ${rest} more places in this text (--all shows them)`] : []),
  ];
}

function toHunkLines(
  { skipped, rest, lead, before, after, trail }: TextHunk,
  how: DifferenceStyle,
): string[] {
  const start = skipped > 0 ? `…(${skipped} the same)… ${lead}` : lead;
  const end = rest > 0 ? `${trail} …(${rest} the same)…` : trail;
  const { style, all } = how;
  const line = (mark: string, text: string) => `${mark} ${start}${all ? text : cut(text)}${end}`;
  return [`        ${style.red(line("-", before))}`, `        ${style.green(line("+", after))}`];
}

function toSide(mark: "-" | "+", text: string | undefined, { style, all }: DifferenceStyle): string[] {
  if (text === undefined) return [];
  const paint = mark === "-" ? style.red : style.green;
  return [`        ${paint(`${mark} ${all ? text : cut(text)}`)}`];
}

function cut(text: string): string {
  if (text.length <= WHOLE) return text;
  const kept = truncateText(text, WHOLE);
  return `${kept} …(${text.length - kept.length} more characters; --all shows them)…`;
}
