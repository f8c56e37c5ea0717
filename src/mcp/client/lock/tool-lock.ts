import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import { type DefinitionChange, diffDefinitions } from "./definition-diff.ts";
import { hashDefinition, type ToolDefinition } from "./definition-hash.ts";

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
  const known = ownOf(lock.servers, namespace) ?? {};
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
  return ownOf(ownOf(lock.servers, namespace) ?? {}, tool);
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

function ownOf<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
