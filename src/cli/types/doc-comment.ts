import { cleanText } from "../../core/text/clean-text.ts";

const MAX_COMMENT = 1_000;

/** What a comment of a type is made of. */
export interface Documented {
  readonly description?: unknown;
  readonly title?: unknown;
  readonly deprecated?: unknown;
  readonly default?: unknown;
}

/** Writes what a schema says for people as a comment with a line break after it; nothing where it says nothing. */
export function docComment({ description, title, deprecated, ...rest }: Documented): string {
  const said = typeof description === "string" && description.trim() !== "" ? description : title;
  const lines = [
    ...(typeof said === "string" ? commentLines(said) : []),
    ...(deprecated === true ? ["@deprecated"] : []),
    ...("default" in rest ? defaultLine(rest.default) : []),
  ];
  const [first] = lines;
  if (first === undefined) return "";
  if (lines.length === 1) return `/** ${first} */\n`;
  return `/**\n${lines.map((line) => (line === "" ? " *" : ` * ${line}`)).join("\n")}\n */\n`;
}

function defaultLine(value: unknown): readonly string[] {
  const isScalar = typeof value === "number" || typeof value === "boolean";
  const isShort = typeof value === "string" && value.length <= 60;
  return isScalar || isShort ? [`@default ${commentLines(JSON.stringify(value)).join(" ")}`] : [];
}

/** Lines that end no comment, hold nothing hidden, and tell the compiler nothing. */
function commentLines(text: string): readonly string[] {
  const { text: clean } = cleanText(text.slice(0, MAX_COMMENT * 2));
  const short = clean.length > MAX_COMMENT ? `${cutAt(clean, MAX_COMMENT)}…` : clean;
  const safe = short.replace(/\*(?=\/)/g, "*\\").replace(/@(?=ts-)/gi, "");
  const lines = safe.split("\n").map((line) => line.replace(/\s+/g, " ").trim());
  return lines.filter((line, index) => line !== "" || (index > 0 && lines[index - 1] !== "")).slice(0, 40);
}

function cutAt(text: string, length: number): string {
  const isSplit = /[\uD800-\uDBFF]/.test(text.charAt(length - 1));
  return text.slice(0, isSplit ? length - 1 : length).trimEnd();
}
