import { isAscii, isUtf8 } from "node:buffer";
import type { Alias, LineCounter, Pair, ParsedNode, Scalar, YAMLMap, YAMLSeq } from "yaml";
import { CallError } from "../../../core/errors/errors.ts";
import { findJsonFault } from "../../../core/json/json-fault.ts";
import { setOwn } from "../../../core/json/json-value.ts";
import { escapeUnits } from "../../../core/text/clean-text.ts";
import { shortText } from "../../../core/text/truncate-text.ts";

/** A document that was read, and whether its text names other files. */
export interface ParsedDocument {
  readonly value: unknown;
  /** False only where no reference can lead out of the document. */
  readonly mayReferOut: boolean;
}

const REFERS_OUT = /"\$ref"\s*:\s*"[^#"]/;
const YAML_NAME = /\.ya?ml$/i;

/** Reads the bytes of a JSON or YAML document; `name` is what errors call it. */
export async function parseDocument(bytes: Buffer, name: string): Promise<ParsedDocument> {
  const text = decodeDocument(bytes, looksLikeJson(bytes));
  if (text === undefined) throw new Error(`${name} is not UTF-8 text; save it as UTF-8.`);
  if (text.trim() === "") throw new Error(`${name} is empty.`);
  refuseMarkup(text, name);
  if (!looksLikeJson(bytes)) return { value: await parseYaml(text, name), mayReferOut: true };
  try {
    return { value: JSON.parse(text), mayReferOut: REFERS_OUT.test(text) };
  } catch (error) {
    const original = decodeDocument(bytes, false) ?? text;
    if (YAML_NAME.test(name)) return { value: await parseYaml(original, name), mayReferOut: true };
    throw new Error(`${name} is not valid JSON: ${describeJsonError(original)}`, { cause: error });
  }
}

/** Pages that show a document are taken for the document itself. */
function refuseMarkup(text: string, name: string): void {
  const start = text.slice(0, 1_000).trimStart();
  if (!start.startsWith("<")) return;
  const what = start.startsWith("<?xml") ? "XML" : "an HTML page";
  throw new Error(
    `${name} is ${what}, not an OpenAPI document; give the place of the document itself, which is JSON or YAML.`,
  );
}

function looksLikeJson(bytes: Buffer): boolean {
  const start = bytes
    .subarray(0, 1_024)
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trimStart();
  return start.startsWith("{") || start.startsWith("[");
}

/** Says where the text of the file is broken, which what `JSON.parse` throws does not. */
function describeJsonError(text: string): string {
  const at = findJsonFault(text);
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - before.lastIndexOf("\n");
  const what = at >= text.length ? "it ends too early" : `unexpected ${JSON.stringify(text.charAt(at))}`;
  return `${what}, at line ${line}, column ${column}.`;
}

/** Bytes looked at together: small enough that a rare letter costs little, large enough that plain ones cost nothing. */
const CHUNK = 16_384;

/**
 * Decodes the text of a document, or gives nothing where the bytes are not UTF-8. With `ascii`, letters beyond ASCII become
 * `\uXXXX`: the text then takes one byte a letter, and reading JSON takes less time than decoding it would.
 */
export function decodeDocument(bytes: Buffer, ascii: boolean): string | undefined {
  const body = withoutMark(bytes);
  if (isAscii(body)) return body.toString("latin1");
  if (!isUtf8(body)) return undefined;
  return ascii ? escaped(body) : body.toString("utf8");
}

function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** Written into bytes of their own and decoded as a whole: a join of texts would take three times as long. */
function escaped(bytes: Buffer): string {
  const runs = letterRuns(bytes);
  // Where such letters are the rule, escaping them is what takes long.
  if (runs.length * 100 > bytes.length) return bytes.toString("utf8");
  const texts = runs.map(([start, stop]) => escapeUnits(bytes.toString("utf8", start, stop)));
  const growth = runs.reduce(
    (sum, [start, stop], i) => sum + (texts[i] as string).length - (stop - start),
    0,
  );
  const result = Buffer.allocUnsafeSlow(bytes.length + growth);
  let from = 0;
  let to = 0;
  runs.forEach(([start, stop], i) => {
    to += bytes.copy(result, to, from, start);
    to += result.write(texts[i] as string, to, "latin1");
    from = stop;
  });
  bytes.copy(result, to, from);
  return result.toString("latin1");
}

/** Where letters beyond ASCII stand, whole letters always. */
function letterRuns(bytes: Buffer): [start: number, stop: number][] {
  const runs: [number, number][] = [];
  let i = 0;
  while (i < bytes.length) {
    const end = Math.min(i + CHUNK, bytes.length);
    if (isAscii(bytes.subarray(i, end))) {
      i = end;
      continue;
    }
    for (; i < end; i++) {
      if ((bytes[i] as number) < 0x80) continue;
      const start = i;
      while (i < bytes.length && (bytes[i] as number) >= 0x80) i++;
      runs.push([start, i]);
    }
  }
  return runs;
}

/** Values that aliases and merge keys of one text may add to what is written out in it. */
const MAX_REPEATED = 1_000_000;

/** Reads YAML 1.2 as plain data: merge keys merge, what aliases repeat is shared, and a key is given once. */
async function parseYaml(text: string, name: string): Promise<unknown> {
  const yaml = await import("yaml");
  const lines = new yaml.LineCounter();
  try {
    return new YamlReading(yaml).read(composeYaml(text, yaml, lines));
  } catch (error) {
    if (isBeyondLimit(error))
      throw new CallError("TOO_LARGE", `${name} is too large: ${describe(error, lines)}.`);
    throw new Error(`${name} is not valid YAML: ${describe(error, lines)}.`, { cause: error });
  }
}

/** Parses a text, and stops at the first thing that is wrong in it. */
function composeYaml(text: string, yaml: typeof import("yaml"), lines: LineCounter): Node {
  const composer = new yaml.Composer({
    ...{ version: "1.2", schema: "core", merge: true, logLevel: "error" },
    // Takes time that grows with the square of the text; keys are looked at later.
    uniqueKeys: false,
  });
  // Collects every error otherwise, each of which costs more than the text it is about.
  Object.defineProperty(composer, "onError", { value: stopper() });
  const tokens = new yaml.Parser(lines.addNewLine).parse(text);
  const [document, second] = composer.compose(tokens, true, text.length);
  const [problem] = document?.errors ?? [];
  if (problem !== undefined) throw new YamlFault(problem.message, problem.pos[0]);
  if (second !== undefined) throw new YamlFault("it holds several documents", second.range[0]);
  return document?.contents;
}

type ErrorSource = number | readonly [number, number] | { readonly offset: number };

/** Throws what it hears of first, again and again: the package catches it on its way out and reports it as another. */
function stopper(): (source: ErrorSource, code: string, message: string, isWarning?: boolean) => void {
  let first: Error | undefined;
  return (source, code, message, isWarning) => {
    if (isWarning === true) return;
    const offset = typeof source === "number" ? source : "offset" in source ? source.offset : source[0];
    first ??= code === "RESOURCE_EXHAUSTION" ? new RangeError(message) : new YamlFault(message, offset);
    throw first;
  };
}

/** What is wrong about a text, and where. */
class YamlFault extends Error {
  override readonly name = "YamlFault";
  readonly offset: number;
  readonly isLimit: boolean;

  constructor(message: string, offset: number, isLimit = false) {
    super(message);
    this.offset = offset;
    this.isLimit = isLimit;
  }
}

/** Tells a text that has more in it than is read from one that is wrong. */
function isBeyondLimit(error: unknown): boolean {
  return error instanceof RangeError || (error instanceof YamlFault && error.isLimit);
}

function describe(error: unknown, lines: LineCounter): string {
  if (error instanceof RangeError) return "it is nested too deeply";
  if (!(error instanceof YamlFault)) return "it cannot be read";
  const { line, col } = lines.linePos(error.offset);
  return line === 0 ? error.message : `${error.message}, at line ${line}, column ${col}`;
}

type Node = ParsedNode | null | undefined;

/** The value of a node that has an anchor. */
interface Anchored {
  value: unknown;
  /** Values in it, those that aliases repeat included. */
  size: number;
}

/** One walk over what was parsed, in the order of the text. */
class YamlReading {
  readonly #yaml: Pick<typeof import("yaml"), "isAlias" | "isMap" | "isSeq">;
  readonly #anchors = new Map<string, Anchored>();
  #size = 0;
  #repeated = 0;
  /** Maps that are being filled. */
  readonly #open = new Set<unknown>();

  constructor(yaml: Pick<typeof import("yaml"), "isAlias" | "isMap" | "isSeq">) {
    this.#yaml = yaml;
  }

  read(node: Node): unknown {
    if (node === null || node === undefined) return null;
    this.#size += 1;
    if (this.#yaml.isAlias(node)) return this.#repeat(node);
    const value = this.#yaml.isMap(node) ? {} : this.#yaml.isSeq(node) ? [] : (node as Scalar).value;
    const { anchor } = node as { anchor?: string };
    const anchored: Anchored = { value, size: 1 };
    // Known before it is filled: it may contain itself.
    if (anchor !== undefined) this.#anchors.set(anchor, anchored);
    const before = this.#size;
    if (this.#yaml.isMap(node)) {
      this.#open.add(value);
      this.#fill(value as Record<string, unknown>, node as YAMLMap.Parsed);
      this.#open.delete(value);
    } else if (this.#yaml.isSeq(node)) {
      for (const item of (node as YAMLSeq.Parsed).items) (value as unknown[]).push(this.read(item));
    }
    anchored.size += this.#size - before;
    return value;
  }

  #repeat(alias: Alias.Parsed): unknown {
    const anchored = this.#anchors.get(alias.source);
    if (anchored === undefined) throw new YamlFault("an alias has no anchor before it", offsetOf(alias));
    this.#size += anchored.size;
    this.#repeated += anchored.size;
    if (this.#repeated > MAX_REPEATED) {
      throw new YamlFault("its aliases multiply without bounds", offsetOf(alias), true);
    }
    return anchored.value;
  }

  #fill(map: Record<string, unknown>, node: YAMLMap.Parsed): void {
    const written = new Set<string>();
    for (const { key, value } of node.items as Pair<ParsedNode, ParsedNode | null>[]) {
      const name = this.#nameOf(key);
      if (name === undefined) {
        this.#merge(map, value, key);
        continue;
      }
      if (written.has(name)) {
        throw new YamlFault(`the key ${JSON.stringify(shortText(name, 100))} is given twice`, offsetOf(key));
      }
      written.add(name);
      setOwn(map, name, this.read(value));
    }
  }

  /** Nothing for the key that merges. */
  #nameOf(key: ParsedNode): string | undefined {
    const node = this.#yaml.isAlias(key) ? this.#repeat(key) : (key as Scalar | null)?.value;
    if (typeof node === "symbol") return undefined;
    if (this.#yaml.isMap(key) || this.#yaml.isSeq(key) || (typeof node === "object" && node !== null)) {
      throw new YamlFault("a key is a list or a map", offsetOf(key));
    }
    return node === null || node === undefined ? "" : String(node);
  }

  /** Adds what is not there yet; keys that are written out win, wherever they stand. */
  #merge(map: Record<string, unknown>, node: Node, key: ParsedNode): void {
    const value = this.read(node);
    const sources: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const source of sources) {
      if (typeof source !== "object" || source === null || Array.isArray(source)) {
        throw new YamlFault("what is merged is no map", offsetOf(key));
      }
      // It has no size yet that could be counted, and would grow with every merge.
      if (this.#open.has(source)) throw new YamlFault("a map is merged into itself", offsetOf(key));
      for (const name of Object.keys(source)) {
        if (!Object.hasOwn(map, name)) setOwn(map, name, (source as Record<string, unknown>)[name]);
      }
    }
  }
}

function offsetOf(node: ParsedNode): number {
  return node.range?.[0] ?? 0;
}
