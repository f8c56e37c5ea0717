import { readFileSync } from "node:fs";
import { CONFIG_LIMITS } from "./config-limits.ts";
import type { ConfigPath } from "./config-path.ts";
import { type Locate, toPlace } from "./config-text.ts";

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
