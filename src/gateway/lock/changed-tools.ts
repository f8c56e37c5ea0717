import { createHash } from "node:crypto";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import type { DefinitionChange } from "../../mcp/client/lock/tool-lock.ts";
import { type ToolDifference, toReadableDiff, unambiguousText } from "./readable-diff.ts";

/** A tool that is not as it was approved, and where it differs: fit to be shown. */
export interface ChangedTool {
  readonly tool: string;
  readonly kind: "new" | "changed";
  /** Empty for tools past the first 200, of which only that they differ is told. */
  readonly diff: readonly ToolDifference[];
}

/** How much is told of tools that changed: a server may say as much as it likes. */
export const CHANGED_TOOL_LIMITS = {
  /** Tools whose differences are told. */
  tools: 200,
  /** Differences of one tool. */
  differences: 50,
  /** Characters of one side of a difference. */
  characters: 2_000,
} as const;

interface KnownDiff {
  readonly key: string;
  readonly diff: readonly ToolDifference[];
}

/** Tells which tools are not as approved, over and over: what is the same as the last time is not written anew. */
export class ChangedTools {
  readonly #mask: (text: string) => string;
  #known: ReadonlyMap<string, KnownDiff> = new Map();

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  /** Writes what is refused now; what hides is made visible, secrets are masked. */
  write(refused: readonly DefinitionChange[]): readonly ChangedTool[] {
    const known = new Map<string, KnownDiff>();
    const written = refused.map((change, at): ChangedTool => {
      const { tool, kind } = change;
      const shown = this.#mask(safeLine(unambiguousText(this.#mask(tool)), 200));
      if (at >= CHANGED_TOOL_LIMITS.tools) return { tool: shown, kind, diff: [] };
      const found = this.#diffOf(change);
      known.set(tool, found);
      return { tool: shown, kind, diff: found.diff };
    });
    this.#known = known;
    return written;
  }

  #diffOf({ tool, diff }: DefinitionChange): KnownDiff {
    const key = createHash("sha256").update(JSON.stringify(diff)).digest("base64");
    const before = this.#known.get(tool);
    if (before?.key === key) return before;
    const { differences, characters } = CHANGED_TOOL_LIMITS;
    return { key, diff: toReadableDiff(diff, this.#mask, { differences, characters }) };
  }
}

/** Whether calls of an operation are refused because its tool changed since it was approved. */
export function isRefused(
  report: { readonly changed?: readonly ChangedTool[] } | undefined,
  operation: AnyOperation,
): boolean {
  const { id, name } = operation;
  // A gateway whose ids are kept serves them under names without dots.
  const names = [name, id, id.replaceAll(".", "_")];
  return report?.changed?.some(({ tool, kind }) => kind === "changed" && names.includes(tool)) === true;
}
