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

/** Imports each tool by itself: what is wrong with one never hides another. */
export function importTools(listed: readonly unknown[], importing: ToolImport): ImportedTools {
  const tools = new Map<string, ImportedTool>();
  const filtered = new Set<string>();
  const ids = new Set<string>();
  const unusable: UnusableTool[] = [];
  const notes: ToolNote[] = [];
  for (const [place, entry] of listed.entries()) {
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
