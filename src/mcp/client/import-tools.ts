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
  /** By exact name. */
  readonly tools: ReadonlyMap<string, ImportedTool>;
  /** Names that the filter left out. */
  readonly filtered: ReadonlySet<string>;
  readonly unusable: readonly UnusableTool[];
  readonly notes: readonly ToolNote[];
}

/** Milliseconds that tools are imported in a row while others wait. */
const SLICE_MS = 10;

/** Imports each tool by itself: what is wrong with one never hides another. Thousands are imported bit by bit. */
export async function importTools(listed: readonly unknown[], importing: ToolImport): Promise<ImportedTools> {
  const tools = new Map<string, ImportedTool>();
  const filtered = new Set<string>();
  const ids = new Set<string>();
  const unusable: UnusableTool[] = [];
  const notes: ToolNote[] = [];
  let until = monotonicNow() + SLICE_MS;
  for (const [place, entry] of listed.entries()) {
    if (monotonicNow() >= until) {
      await setImmediate();
      until = monotonicNow() + SLICE_MS;
    }
    const tool = nameForPeople(entry, place);
    try {
      const imported = importTool(entry, importing);
      const { name, operation } = imported;
      if (tools.has(name) || filtered.has(name))
        throw new TypeError("Another tool before it has the same name.");
      if (ids.has(operation.id))
        throw new TypeError(`Another tool before it is operation "${operation.id}" already.`);
      if (importing.options.filter?.(name, operation) === false) {
        filtered.add(name);
        continue;
      }
      ids.add(operation.id);
      tools.set(name, imported);
      notes.push(...imported.notes.map((note) => ({ tool, note })));
    } catch (cause) {
      unusable.push({ tool, reason: cause instanceof Error ? cause.message : String(cause) });
    }
  }
  return { tools, filtered, unusable, notes };
}

function nameForPeople(tool: unknown, place: number): string {
  const name = isPlainObject(tool) ? tool["name"] : undefined;
  return typeof name === "string" && name !== "" ? toPlainLine(name, 200) : `#${place + 1}`;
}
