import { CONFIG_LIMITS } from "./config-limits.ts";
import type { ConfigPath } from "./config-path.ts";
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
  const { readYamlText } = await import("./yaml-text-map.ts");
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
