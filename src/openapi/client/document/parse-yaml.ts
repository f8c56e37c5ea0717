import type { Alias, LineCounter, Pair, ParsedNode, Scalar, YAMLMap, YAMLSeq } from "yaml";
import { CallError } from "../../../core/errors/errors.ts";
import { setOwn } from "../../../core/json/json-value.ts";

/** Values that aliases and merge keys of one text may add to what is written out in it. */
const MAX_REPEATED = 1_000_000;

/** Reads YAML 1.2 as plain data: merge keys merge, what aliases repeat is shared, and a key is given once. */
export async function parseYaml(text: string, name: string): Promise<unknown> {
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
        throw new YamlFault(`the key ${JSON.stringify(clip(name))} is given twice`, offsetOf(key));
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

function clip(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
