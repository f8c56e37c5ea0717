import { setImmediate } from "node:timers/promises";
import { monotonicNow } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type ImportedTool, importTool, type ToolImport } from "./import-tool.ts";
import { toPlainLine } from "./plain-line.ts";

/** A tool that cannot be called as an operation, and why. */
export interface UnusableTool {
  /** Its name for people; its place in the list where it has none. */
  readonly tool: string;
  readonly reason: string;
}

/** What was taken over less than whole of a tool that works, or hides in something else that a server offers. */
export interface ToolNote {
  /** The tool's name for people; `prompt …`, `resource …`, `resource template …` or `instructions` for what is no tool. */
  readonly tool: string;
  readonly note: string;
}

/** What a list of tools came to. */
export interface ImportedTools {
  /** By exact name; one that changed since it was approved is there as it was approved. */
  readonly tools: ReadonlyMap<string, ImportedTool>;
  /** Those that a pin never approved: no operations, and for whoever approves tools alone. */
  readonly unapproved: ReadonlyMap<string, ImportedTool>;
  /** Names that the filter left out. */
  readonly filtered: ReadonlySet<string>;
  readonly unusable: readonly UnusableTool[];
  readonly notes: readonly ToolNote[];
}

/** Milliseconds that tools are imported in a row while others wait. */
const SLICE_MS = 10;

/** Imports each tool by itself: what is wrong with one never hides another. Thousands are imported bit by bit, until the signal. */
export async function importTools(listed: readonly unknown[], importing: ToolImport): Promise<ImportedTools> {
  const list = new ToolList(importing);
  let until = monotonicNow() + SLICE_MS;
  for (const [place, entry] of listed.entries()) {
    if (monotonicNow() >= until) {
      await setImmediate();
      until = monotonicNow() + SLICE_MS;
    }
    importing.signal?.throwIfAborted();
    list.add(entry, place);
  }
  return list;
}

/** Tools as they are imported one after the other. */
class ToolList implements ImportedTools {
  readonly tools = new Map<string, ImportedTool>();
  readonly unapproved = new Map<string, ImportedTool>();
  readonly filtered = new Set<string>();
  readonly unusable: UnusableTool[] = [];
  readonly notes: ToolNote[] = [];
  readonly #importing: ToolImport;
  readonly #ids = new Set<string>();
  #objects = 0;

  constructor(importing: ToolImport) {
    this.#importing = importing;
  }

  add(entry: unknown, place: number): void {
    const tool = nameForPeople(entry, place);
    try {
      this.#makeRoom(entry);
      const imported = importTool(entry, this.#importing);
      const { name, operation, change } = imported;
      if (this.tools.has(name) || this.unapproved.has(name) || this.filtered.has(name))
        throw new TypeError("Another tool before it has the same name.");
      const isApproved = change?.kind !== "new";
      if (isApproved && this.#ids.has(operation.id))
        throw new TypeError(`Another tool before it is operation "${operation.id}" already.`);
      if (this.#importing.options.filter?.(name, operation) === false) {
        this.filtered.add(name);
        return;
      }
      if (isApproved) this.#ids.add(operation.id);
      (isApproved ? this.tools : this.unapproved).set(name, imported);
      for (const note of imported.notes) this.notes.push({ tool, note });
    } catch (cause) {
      this.unusable.push({ tool, reason: cause instanceof Error ? cause.message : String(cause) });
    }
  }

  /** Every object of a definition may be a schema, and each takes its time; tools that still fit are taken all the same. */
  #makeRoom(entry: unknown): void {
    const { listObjects } = this.#importing.limits;
    const objects = countObjects(entry, listObjects - this.#objects);
    if (this.#objects + objects > listObjects) {
      throw new TypeError(
        `With it, the definitions of all tools would hold more than ${listObjects} objects and lists.`,
      );
    }
    this.#objects += objects;
  }
}

/** Counts the objects and lists of a definition, itself included; stops beyond `most`. */
function countObjects(entry: unknown, most: number): number {
  const left: unknown[] = [entry];
  let count = 0;
  while (left.length > 0 && count <= most) {
    const next = left.pop();
    if (typeof next !== "object" || next === null) continue;
    count += 1;
    for (const member of Object.values(next)) if (typeof member === "object") left.push(member);
  }
  return count;
}

function nameForPeople(tool: unknown, place: number): string {
  const name = isPlainObject(tool) ? tool["name"] : undefined;
  return typeof name === "string" && name !== "" ? toPlainLine(name, 200) : `#${place + 1}`;
}
