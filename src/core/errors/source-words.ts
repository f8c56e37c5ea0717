import { isPlainObject, toJsonTextOrNone } from "../json/json-value.ts";
import { safeText } from "../text/clean-text.ts";
import { truncateText } from "../text/truncate-text.ts";

/** Characters of `details.said`, what a source said when it failed; the rest is cut. */
const SAID_LENGTH = 1_000;

/** Characters of a source's words that are looked at. */
const MOST_READ = 65_536;
/** Members of an error's body that say what is wrong, in the order they are passed on. */
const SAYING = ["message", "detail", "title", "error", "error_description", "errors"] as const;
/** Objects within objects that are looked through for them. */
const MOST_DEPTH = 4;
const MOST_ENTRIES = 20;

/** Finds what the body of an error says: a text, the members of an object that are for saying it, or else all of it as JSON. */
export function wordsIn(body: unknown): string {
  if (typeof body === "string") return body;
  if (body === undefined || body === null || ArrayBuffer.isView(body)) return "";
  return membersIn(body, MOST_DEPTH) ?? toJsonTextOrNone(body) ?? "";
}

function membersIn(body: unknown, depth: number): string | undefined {
  if (!isPlainObject(body) || depth === 0) return undefined;
  const lines = new Set<string>();
  for (const name of SAYING) {
    const line = Object.hasOwn(body, name) ? lineOf(body[name], depth) : "";
    if (line !== "") lines.add(line);
  }
  return lines.size === 0 ? undefined : [...lines].join("\n");
}

/** An entry of a list is told whole: its other members say what it is about. */
function lineOf(value: unknown, depth: number): string {
  if (typeof value === "string") return value.trim();
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) {
    const entries = value.slice(0, MOST_ENTRIES);
    return entries
      .map((entry) => (typeof entry === "string" ? entry : (toJsonTextOrNone(entry) ?? "")))
      .join("\n");
  }
  if (!isPlainObject(value)) return "";
  return membersIn(value, depth - 1) ?? toJsonTextOrNone(value) ?? "";
}

/**
 * Makes words of a source fit to be passed on as `details.said`: nothing hidden in them, secrets taken out, at most 1,000 characters.
 * Gives nothing where nothing is left.
 */
export function toSaid(words: string, mask: (text: string) => string): string | undefined {
  // Masked before and after: what is taken out of a text could hide a secret, or make one.
  const said = mask(safeText(mask(words.slice(0, MOST_READ)))).trim();
  if (said === "") return undefined;
  return said.length <= SAID_LENGTH ? said : `${truncateText(said, SAID_LENGTH - 1)}…`;
}

/** Gives the source's words in the details of an error, where there are any. */
export function saidIn(details: unknown): string | undefined {
  const said = isPlainObject(details) && Object.hasOwn(details, "said") ? details["said"] : undefined;
  return typeof said === "string" && said !== "" ? said : undefined;
}

/** Gives the details of an error without the source's words; nothing where there are no others. */
export function withoutSaid(details: unknown): unknown {
  if (!isPlainObject(details) || !Object.hasOwn(details, "said")) return details;
  const { said: _, ...others } = details;
  return Object.keys(others).length === 0 ? undefined : others;
}

/** Writes a source's words for people, marked as theirs on every line. */
export function quoteSaid(said: string): string {
  const lines = said.split("\n").map((line) => `> ${line}`);
  return `The source said:\n${lines.join("\n")}`;
}
