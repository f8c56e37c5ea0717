import { isPlainObject } from "../../core/json/json-value.ts";
import { safeText } from "../../core/text/clean-text.ts";
import { findChanges, type ListChange } from "../../core/text/find-changes.ts";
import { shortText } from "../../core/text/truncate-text.ts";
import type { DefinitionDifference } from "../../mcp/client/lock/tool-lock.ts";

/** One place of a definition, by JSON pointer, as it was approved and as it is; what hides is made visible. */
export interface ToolDifference {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** How much of a diff is told. */
interface ReadableDiffLimits {
  /** Places in all. @default every one */
  readonly differences?: number;
  /** Characters of one side; a longer one ends in "…". @default all of them */
  readonly characters?: number;
}

/** Says where a definition differs, in texts that show everything that is in it; a new tool is shown field by field. */
export function toReadableDiff(
  places: readonly DefinitionDifference[],
  mask: (text: string) => string,
  limits: ReadableDiffLimits = {},
): readonly ToolDifference[] {
  const { differences = Number.POSITIVE_INFINITY, characters = Number.POSITIVE_INFINITY } = limits;
  const clean = (value: unknown): string => {
    // Masked before and after: what is made visible could have stood in the middle of a secret.
    const masked = mask(typeof value === "string" ? value : (JSON.stringify(value) ?? "null"));
    // Cut before it is made visible as well: one character more, so that the end is known to be none.
    const kept = masked.length > characters ? masked.slice(0, characters + 1) : masked;
    const shown = mask(safeText(typeof value === "string" ? unambiguousText(kept) : visibleJson(kept)));
    return shown.length > characters ? shortText(shown, characters - 1) : shown;
  };
  const fields = places.flatMap(fieldsOf);
  return fields.slice(0, Math.min(fields.length, differences)).map(({ path, before, after }) => ({
    path: clean(path) || "/",
    ...(before !== undefined && { before: clean(before) }),
    ...(after !== undefined && { after: clean(after) }),
  }));
}

/** What was never seen has no single place: each of its fields is one. */
function fieldsOf({ path, before, after }: DefinitionDifference): DefinitionDifference[] {
  if (path !== "" || before !== undefined || !isPlainObject(after)) {
    return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
  }
  return Object.entries(after)
    .filter(([field]) => field !== "name")
    .map(([field, value]) => ({ path: `/${field}`, after: value }));
}

/** What nobody sees, or sees as something else: controls, formats, private use, unassigned, odd spaces, ignorables. */
const HIDDEN =
  /(?! )[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u00b7]/gu;
/** Two spaces and more, and those at either end. */
const SPACES = /^ +| {2,}| +$/g;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** Letters of other scripts that read as Latin ones. */
const FOREIGN =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/gu;
const LATIN = /\p{Script=Latin}/u;
/** Those of them that by themselves make whole words that read as Latin. */
const LOOKALIKE_WORD = /^[авекмнорстухѕіјһԁԛԝѵґАВЕКМНОРСТУХЅІЈԌԚԜοανικρτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+$/u;
/** Latin letters that read as plain ones, and marks that could have been part of their letter. */
const ODD_LATIN = /[ɑɡɩıȷǀɴʀʏ]|(?<=[A-Za-z])\p{M}/gu;

/**
 * Writes a text in one line so that no two texts look the same: what hides is `\u{…}`, so are letters that pass for others, line
 * breaks and backslashes are escaped, spaces that would not be noticed are dots.
 */
export function unambiguousText(text: string): string {
  return visibleJson(text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t"));
}

/** The same for a text that has its escapes already. */
export function visibleJson(json: string): string {
  return json
    .replace(HIDDEN, escaped)
    .replace(SPACES, (found) => "·".repeat(found.length))
    .replace(WORD, showLookalikes);
}

function showLookalikes(word: string): string {
  if (/^[\w]+$/.test(word)) return word;
  if (LOOKALIKE_WORD.test(word)) return word.replace(/./gu, escaped);
  const letters = LATIN.test(word) ? word.replace(FOREIGN, escaped) : word;
  return letters
    .replace(ODD_LATIN, escaped)
    .replace(/[^\0-\x7f]/gu, (found) =>
      /^[\0-\x7f]+$/.test(found.normalize("NFKC")) ? escaped(found) : found,
    );
}

function escaped(found: string): string {
  return `\\u{${(found.codePointAt(0) as number).toString(16)}}`;
}

/** One place where two texts differ, with what stands around it in both. */
export interface TextHunk {
  /** Characters that both have before `lead`, and that are not shown; after `trail`, of the last place alone. */
  readonly skipped: number;
  readonly rest: number;
  /** What stands right before and after it. */
  readonly lead: string;
  readonly before: string;
  readonly after: string;
  readonly trail: string;
}

/** Characters around a place that are shown. */
const AROUND = 40;

/** Finds every place where two texts differ, by words; places close to each other are one. Time and memory are bounded. */
export function findHunks(before: string, after: string): readonly TextHunk[] {
  const [a, b] = [tokensOf(before), tokensOf(after)];
  return toHunks(a, b, joined(a, findChanges(a, b)));
}

function tokensOf(text: string): readonly string[] {
  return text.match(/\\u\{[0-9a-f]+\}|\\.|[\p{L}\p{N}_]+|./gsu) ?? [];
}

/** Makes one of changes with little between them. */
function joined(a: readonly string[], changes: readonly ListChange[]): readonly ListChange[] {
  const result: ListChange[] = [];
  for (const change of changes) {
    const last = result.at(-1);
    const between = last === undefined ? "" : a.slice(last.to, change.from).join("");
    if (last === undefined || between.length > AROUND) result.push(change);
    else result[result.length - 1] = { ...last, to: change.to, toB: change.toB };
  }
  return result;
}

function toHunks(a: readonly string[], b: readonly string[], changes: readonly ListChange[]): TextHunk[] {
  const hunks: TextHunk[] = [];
  let [end, trailing] = [0, 0];
  changes.forEach(({ from, to, fromB, toB }, index) => {
    const same = a.slice(end, from).join("");
    const next = a.slice(to, changes[index + 1]?.from ?? a.length).join("");
    const lead = same.slice(Math.max(0, same.length - AROUND)).replace(/^[\uDC00-\uDFFF]/, "");
    const trail = next.slice(0, AROUND).replace(/[\uD800-\uDBFF]$/, "");
    hunks.push({
      skipped: Math.max(0, same.length - lead.length - trailing),
      rest: index === changes.length - 1 ? next.length - trail.length : 0,
      lead,
      before: a.slice(from, to).join(""),
      after: b.slice(fromB, toB).join(""),
      trail,
    });
    [end, trailing] = [to, trail.length];
  });
  return hunks;
}
