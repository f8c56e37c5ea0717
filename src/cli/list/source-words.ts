import type { SourceFlags } from "../session.ts";
import { shellWord } from "./example-call.ts";

/** The flags that make a pasted command reach the same target. */
export function sourceWords({ config, mcp, openapi, url, tokenEnv }: SourceFlags): string {
  const given = { config, mcp, openapi, url, "token-env": tokenEnv };
  return Object.entries(given)
    .flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, shellWord(value)]))
    .join(" ");
}
