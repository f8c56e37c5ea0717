import type { SourceFlags } from "../session.ts";
import { shellWord } from "./example-call.ts";

/** The flags that make a pasted command reach the same target. */
export function sourceWords(flags: SourceFlags): string {
  const { config, mcp, openapi, baseUrl, allowPrivate, url, tokenEnv } = flags;
  const given = { config, mcp, openapi, "base-url": baseUrl, url, "token-env": tokenEnv };
  return Object.entries(given)
    .flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, shellWord(value)]))
    .concat(allowPrivate === true ? ["--allow-private"] : [])
    .join(" ");
}
