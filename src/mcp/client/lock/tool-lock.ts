import { createHash } from "node:crypto";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import {
  canonicalJson,
  isPlainObject,
  type JsonValue,
  ownMember,
  setOwn,
} from "../../../core/json/json-value.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";

/** A tool as it was approved. */
export interface ApprovedTool {
  /** `sha256-` and base64, over the canonical JSON of the definition. */
  readonly hash: string;
  readonly definition: ToolDefinition;
}

/** The approved tools of servers, by namespace and by exact name: what `waybill.lock.json` holds. */
export interface ToolLock {
  readonly lockVersion: 1;
  readonly servers: Readonly<Record<string, Readonly<Record<string, ApprovedTool>>>>;
}

/** Makes a lock in which these tools of one server are approved, or an empty one. */
export function createToolLock(namespace?: string, definitions: Iterable<ToolDefinition> = []): ToolLock {
  const empty: ToolLock = { lockVersion: 1, servers: {} };
  return namespace === undefined ? empty : approve(empty, namespace, definitions);
}

/** Gives a lock in which these tools of one server are approved as they are, in place of whatever it held for them. */
export function approve(lock: ToolLock, namespace: string, definitions: Iterable<ToolDefinition>): ToolLock {
  const tools: Record<string, unknown> = {};
  const known = ownMember(lock.servers, namespace) ?? {};
  for (const name of Object.keys(known)) setOwn(tools, name, known[name]);
  for (const definition of definitions) {
    setOwn(tools, String(definition["name"]), { hash: hashDefinition(definition), definition });
  }
  const servers: Record<string, unknown> = {};
  for (const name of Object.keys(lock.servers)) setOwn(servers, name, lock.servers[name]);
  setOwn(servers, namespace, sorted(tools));
  return { lockVersion: 1, servers: sorted(servers) as ToolLock["servers"] };
}

/** Gives a tool as it was approved; nothing where it never was. */
export function findApproved(lock: ToolLock, namespace: string, tool: string): ApprovedTool | undefined {
  return ownMember(ownMember(lock.servers, namespace) ?? {}, tool);
}

/** Says why a tool is not the one that was approved; nothing where it is. */
export function findChange(
  lock: ToolLock,
  namespace: string,
  definition: ToolDefinition,
): DefinitionChange | undefined {
  const tool = String(definition["name"]);
  const approved = findApproved(lock, namespace, tool);
  if (approved === undefined) return { tool, kind: "new", diff: [{ path: "", after: definition }] };
  if (approved.hash === hashDefinition(definition)) return undefined;
  return { tool, kind: "changed", diff: diffDefinitions(approved.definition, definition) };
}

/** Reads a lock from plain JSON; a `TypeError` says what is wrong with it. A hash that its definition does not have is refused. */
export function readToolLock(value: unknown): ToolLock {
  const { lockVersion, servers } = isPlainObject(value) ? value : {};
  if (lockVersion !== 1) throw new TypeError("A lock of tools must have lockVersion 1.");
  if (!isPlainObject(servers)) throw new TypeError("A lock of tools must have an object of servers.");
  for (const [namespace, tools] of Object.entries(servers)) {
    if (!isPlainObject(tools)) throw new TypeError(`The lock holds no tools for "${namespace}".`);
    for (const [name, tool] of Object.entries(tools)) assertApproved(namespace, name, tool);
  }
  return { lockVersion, servers: servers as ToolLock["servers"] };
}

function assertApproved(namespace: string, name: string, tool: unknown): void {
  const { hash, definition } = isPlainObject(tool) ? tool : {};
  const isSame =
    isPlainObject(definition) &&
    definition["name"] === name &&
    hashDefinition(definition as ToolDefinition) === hash;
  if (!isSame) {
    throw new TypeError(
      `The lock is damaged: the hash of "${name}" of "${namespace}" is not that of its definition.`,
    );
  }
}

function sorted(record: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(record).sort()) setOwn(result, key, record[key]);
  return result;
}

/** One place where a definition is not as it was approved; a side that has nothing there is absent. */
export interface DefinitionDifference {
  /** JSON pointer into the definition. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** A tool that a pin refuses, and why. */
export interface DefinitionChange {
  readonly tool: string;
  /** "new" for one that was never approved. */
  readonly kind: "new" | "changed";
  /** At most 100 differences. */
  readonly diff: readonly DefinitionDifference[];
}

/** Bounds on what a diff tells. */
export const DIFF_LIMITS = {
  /** Differences in all. */
  differences: 100,
  /** Characters of one side, written as JSON; a longer one is cut around the first that differs, and becomes text. */
  sideLength: 1_000,
} as const;

/** Characters before the first that differs that a cut side keeps. */
const LEAD_LENGTH = 200;

/** Lists where two values of plain JSON differ, outermost first, within the limits. */
export function diffDefinitions(
  before: unknown,
  after: unknown,
  limits: Readonly<Record<keyof typeof DIFF_LIMITS, number>> = DIFF_LIMITS,
): DefinitionDifference[] {
  const found: DefinitionDifference[] = [];
  compare({ path: "", before, after }, { found, most: limits.differences });
  return found.map((difference) => bounded(difference, limits.sideLength));
}

interface Search {
  readonly found: DefinitionDifference[];
  readonly most: number;
}

function compare({ path, before, after }: DefinitionDifference, search: Search): void {
  const { found, most } = search;
  if (found.length >= most) return;
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    for (let i = 0; i < length; i++)
      compare({ path: joinPointer(path, i), before: before[i], after: after[i] }, search);
    return;
  }
  if (isPlainObject(before) && isPlainObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const pair = { before: ownMember(before, key), after: ownMember(after, key) };
      compare({ path: joinPointer(path, key), ...pair }, search);
    }
    return;
  }
  if (isEqual(before, after)) return;
  found.push({ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) });
}

/** Cuts both sides from the same place on, so that what differs is in what is left. */
function bounded({ path, before, after }: DefinitionDifference, most: number): DefinitionDifference {
  const from = Math.max(0, firstDifference(textOf(before), textOf(after)) - LEAD_LENGTH);
  const cut = (value: unknown): unknown => {
    const text = textOf(value);
    const written = typeof value === "string" ? JSON.stringify(value) : text;
    if (written.length <= most) return value;
    const kept = text.slice(from, from + most).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "");
    return `${from > 0 ? "…" : ""}${kept}${from + most < text.length ? "…" : ""}`;
  };
  return {
    path,
    ...(before !== undefined && { before: cut(before) }),
    ...(after !== undefined && { after: cut(after) }),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function firstDifference(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  while (at < length && one.charCodeAt(at) === other.charCodeAt(at)) at++;
  return at;
}

/** The fields of a tool that a model sees. */
const SEEN_FIELDS = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] as const;

/** What is approved of a tool: all that a model sees of it, as the server sent it. */
export type ToolDefinition = Readonly<Record<string, JsonValue>>;

/** Picks what is approved of a tool; `operation` is what it says of the operation behind it, where ids are kept. */
export function toDefinition(
  tool: Readonly<Record<string, unknown>>,
  operation?: Readonly<Record<string, unknown>>,
): ToolDefinition {
  const definition: Record<string, JsonValue> = {};
  for (const field of SEEN_FIELDS) {
    if (Object.hasOwn(tool, field) && tool[field] !== undefined) definition[field] = tool[field] as JsonValue;
  }
  if (operation !== undefined) definition["operation"] = operation as JsonValue;
  return definition;
}

/** Gives the hash under which a definition is approved: `sha256-` and base64. */
export function hashDefinition(definition: ToolDefinition): string {
  return `sha256-${createHash("sha256").update(canonicalJson(definition), "utf8").digest("base64")}`;
}
