import { readFileSync } from "node:fs";
import type { Document, Node, Pair, YAMLError } from "yaml";
import { CONFIG_LIMITS, type ConfigPath, quoteText } from "./config-path.ts";
import { readJsonText, TextDepth, TextMistake, type TextNode } from "./json-text-map.ts";
import { ConfigError } from "./loaded-config.ts";

/** Says where something stands: `waybill.config.json:12:5`; only the name of the file where lines are not known. */
export type Locate = (path: ConfigPath, at: "key" | "value") => string;

/** What the text of a config holds, and how to find where. */
export interface ConfigText {
  readonly value: unknown;
  readonly warnings: readonly string[];
  /** Made when it is first needed, which is only when there is something to say. */
  locate(): Locate;
}

/** Reads the text of a `.json`, `.yaml` or `.yml` config; `name` is what messages call it. */
export async function readConfigText(text: string, name: string): Promise<ConfigText> {
  const plain = text.startsWith("\uFEFF") ? text.slice(1) : text;
  try {
    return name.endsWith(".json") ? readJson(plain, name) : await readYaml(plain, name);
  } catch (thrown) {
    if (!(thrown instanceof TextMistake)) throw thrown;
    throw new ConfigError([`${toPlace(plain, name, thrown.offset)}  ${thrown.message}`]);
  }
}

function readJson(text: string, name: string): ConfigText {
  try {
    const root = readJsonText(text, CONFIG_LIMITS.depth, { uniqueNames: true });
    const locate = (): Locate => (path, at) => toPlace(text, name, offsetIn(root, path, at));
    return { value: root.value, warnings: [], locate };
  } catch (thrown) {
    if (!(thrown instanceof TextDepth)) throw thrown;
    // What is nested too deeply is read by `JSON.parse`, but not here; it is also all there is to say.
    const locate = (): Locate => () => toPlace(text, name, thrown.offset);
    return { value: parseOr(text, thrown), warnings: [], locate };
  }
}

/** Comments and trailing commas are too much for `JSON.parse`. */
function parseOr(text: string, mistake: TextMistake): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw mistake;
  }
}

function offsetIn(root: TextNode, path: ConfigPath, at: "key" | "value"): number {
  let node = root;
  for (const [index, part] of path.entries()) {
    const member = typeof part === "string" ? node.members?.get(part) : undefined;
    if (member !== undefined && at === "key" && index === path.length - 1) return member.keyOffset;
    const next = typeof part === "number" ? node.items?.[part] : member?.node;
    if (next === undefined) break;
    node = next;
  }
  return node.offset;
}

async function readYaml(text: string, name: string): Promise<ConfigText> {
  const { value, warnings, offsetOf } = await readYamlText(text);
  const locate = (): Locate => (path, at) => toPlace(text, name, offsetOf(path, at));
  return {
    value,
    warnings: warnings.map((one) => `${toPlace(text, name, one.offset)}  ${one.message}`),
    locate,
  };
}

/** Writes where in a text something stands; lines and columns count from 1. */
export function toPlace(text: string, name: string, offset: number): string {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return `${name}:${line}:${offset - before.lastIndexOf("\n")}`;
}

/** What a YAML text holds, and where. */
export interface YamlText {
  readonly value: unknown;
  /** What is odd about the text, and where. */
  readonly warnings: readonly TextMistake[];
  /** Where a value or the name of a member begins; for what is not there, where the nearest thing around it does. */
  offsetOf(path: ConfigPath, at: "key" | "value"): number;
}

/** Reads YAML 1.2 with merge keys; throws a `TextMistake` for the first thing that is wrong. */
export async function readYamlText(text: string): Promise<YamlText> {
  const yaml = await import("yaml");
  let document: Document.Parsed;
  let value: unknown;
  try {
    document = yaml.parseDocument(text, { merge: true, prettyErrors: false, logLevel: "error" });
    const [error] = document.errors;
    if (error?.code === "MULTIPLE_DOCS")
      throw new TextMistake("A config is one YAML document; a second one begins here.", error.pos[0]);
    if (error !== undefined) throw toMistake(error, text);
    value = document.toJS({ maxAliasCount: 100 });
  } catch (thrown) {
    if (thrown instanceof TextMistake) throw thrown;
    // Aliases that multiply, or nesting that leaves no stack.
    throw new TextMistake("The config is nested too deeply, or has aliases that make too much of it.", 0);
  }
  const warnings = document.warnings.map(({ message, pos }) => new TextMistake(toSentence(message), pos[0]));
  const resolve = (node: unknown): unknown => (yaml.isAlias(node) ? node.resolve(document) : node);
  const step = (node: unknown, part: string | number): { key?: Node; value: unknown } | undefined => {
    const at = resolve(node);
    if (yaml.isSeq(at)) return typeof part === "number" ? { value: at.items[part] } : undefined;
    if (!yaml.isMap(at)) return undefined;
    const isMeant = ({ key }: Pair): boolean => String(yaml.isScalar(key) ? key.value : key) === String(part);
    const pair = at.items.find(isMeant);
    return pair === undefined ? undefined : { key: pair.key as Node, value: pair.value };
  };
  return {
    value,
    warnings,
    offsetOf(path, at) {
      let offset = 0;
      let node: unknown = document.contents;
      for (const [index, part] of path.entries()) {
        const next = step(node, part);
        if (next === undefined) break;
        const isKey = at === "key" && index === path.length - 1;
        offset = startOf(isKey ? next.key : next.value) ?? startOf(next.key) ?? offset;
        node = next.value;
      }
      return offset;
    },
  };
}

/** A reference without quotes is taken for the beginning of a map where braces or brackets are around it. */
function toMistake({ message, pos: [at] }: YAMLError, text: string): TextMistake {
  if (text[at] !== "{" || text[at - 1] !== "$") return new TextMistake(toSentence(message), at);
  const said = "Within braces or brackets a value with a reference stands in quotes";
  const [reference] = /^\{[^{}\n]{0,80}\}/.exec(text.slice(at, at + 100)) ?? ["{NAME}"];
  return new TextMistake(`${said}; write ${quoteText(`$${reference}`)}.`, at - 1);
}

function startOf(node: unknown): number | undefined {
  return (node as Partial<Node> | null | undefined)?.range?.[0];
}

function toSentence(message: string): string {
  const line = message.split("\n", 1)[0] as string;
  return line.endsWith(".") ? line : `${line}.`;
}

/** Texts and comments: what stands in them is not looked at, but for the names of fields. */
const TEXT_OR_COMMENT =
  /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;

/**
 * Says where the fields of a config stand in the module that makes it, as far as that can be told by looking for their names: a name
 * that stands there once is where it is meant; else the nearest one around it does. Only the name of the file where none does.
 */
export function locateInModule(path: string, name: string): Locate {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return () => name;
  }
  if (text.length > CONFIG_LIMITS.bytes) return () => name;
  const looked = text.replace(TEXT_OR_COMMENT, (found, offset: number) => {
    const isName =
      /^["']/.test(found) &&
      /^\s{0,100}:/.test(text.slice(offset + found.length, offset + found.length + 101));
    return isName ? found : found.replace(/[^\n]/g, " ");
  });
  return (path: ConfigPath) => {
    for (const part of path.toReversed()) {
      const offset = typeof part === "string" ? onlyPlaceOf(part, looked) : undefined;
      if (offset !== undefined) return toPlace(text, name, offset);
    }
    return name;
  };
}

/** Where a field of this name is given, if that is one place. */
function onlyPlaceOf(field: string, text: string): number | undefined {
  const plain = field.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  const given = new RegExp(`(?<![\\w$.])(?:"${plain}"|'${plain}'|${plain})\\s*:`, "g");
  const [first, second] = text.matchAll(given);
  return second === undefined ? first?.index : undefined;
}
