/** A block of a page that a reader runs, or saves. */
export interface DocumentBlock {
  /** Of the page, from 1 on. */
  readonly line: number;
  readonly text: string;
  /** What a command prints, where the page shows it. */
  readonly prints?: string;
  /** What the block is saved as; nothing for commands. */
  readonly file?: string;
}

const FENCE = /^```(\w+)\n(.*?)^```$/gms;
const SAVED = new Set(["ts", "js", "json", "yaml"]);

/** The blocks of a page in order: commands with what they print, and files, named by the last code word before them. */
export function blocksOf(page: string): DocumentBlock[] {
  const fences = [...page.matchAll(FENCE)].map((match) => ({
    kind: match[1] as string,
    text: match[2] as string,
    at: match.index,
    before: page.slice(0, match.index).trimEnd(),
  }));
  return fences.flatMap(({ kind, text, at, before }, index) => {
    const line = before.split("\n").length;
    const next = fences[index + 1];
    const gap =
      next &&
      page
        .slice(at, next.at)
        .replace(/^```.*?^```$/ms, "")
        .trim();
    if (kind === "sh") {
      return [{ line, text, ...(next?.kind === "text" && gap === "" && { prints: next.text }) }];
    }
    if (!SAVED.has(kind)) return [];
    const file = [...(before.split("\n").at(-1) ?? "").matchAll(/`([^`]+)`/g)].at(-1)?.[1];
    if (file === undefined) throw new Error(`Nothing says what the block after line ${line} is saved as.`);
    return [{ line, text, file }];
  });
}

/** Whether a text is as a page shows it: `…` stands for anything, the end of lines for any blanks. */
export function isAsShown(shown: string, text: string, part: "whole" | "part"): boolean {
  const lines = (all: string): string => all.trimEnd().replaceAll(/[ \t]+$/gm, "");
  const escaped = lines(shown)
    .split("…")
    .map((plain) => plain.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
    .join(".*?");
  const pattern = part === "whole" ? `^${escaped}$` : escaped;
  return new RegExp(pattern, "s").test(lines(text));
}

/** The programs of a section that shows what there was before, and the same with Waybill. */
export interface BlockPair {
  readonly title: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/**
 * What the documents of others import that cannot be installed, and what stands in for it: their functions have the same names here, so
 * that their code runs on ours.
 */
export const STAND_INS = {
  "./utils.js": "waybill/formats",
  "@alkdev/operations": "waybill",
  "@alkdev/typebox/value": "typebox/value",
} as const;

/** The sections of a page that have the headings "Before" and "With Waybill", with the TypeScript under each. */
export function pairsOf(page: string): BlockPair[] {
  return page
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [title = "", ...parts] = section.split(/^### /m);
      const under = (heading: string): string[] =>
        parts
          .filter((part) => part.startsWith(`${heading}\n`))
          .flatMap((part) => [...part.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1] ?? ""));
      return {
        title: title.split("\n")[0] ?? "",
        before: under("Before"),
        after: under("With Waybill"),
      };
    });
}
