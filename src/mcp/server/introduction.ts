import type { Identity } from "../../core/access/identity.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { cutText } from "../../core/text/cut-text.ts";
import type { McpProvider } from "../provider.ts";
import { importedFrom } from "./describe-tool.ts";
import type { ServerCapabilities } from "./mcp-server.ts";
import { providersFor } from "./provider-lists.ts";
import type { ServedExecutor } from "./tool-table.ts";

/** Characters of what sources tell models that are passed on; the server's own words are not counted. */
export const INSTRUCTION_LIMITS = {
  /** Of one source, without its heading. */
  source: 8_192,
  /** Of all of them together, without their headings. */
  all: 32_768,
} as const;

/** What a server introduces itself with. */
export interface IntroductionOptions {
  readonly executor: ServedExecutor;
  /** Those that may have something to say, besides this process. */
  readonly providers: readonly McpProvider[];
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
  /** Who is asking. */
  readonly identity: Identity | undefined;
}

/** The capabilities and instructions of a server as one caller gets them: with those of the sources that are there for the caller. */
export function introduce({
  executor,
  providers,
  capabilities,
  instructions,
  identity,
}: IntroductionOptions): object {
  const speaking = providers.filter(
    (provider) => provider.instructions !== undefined || Object.keys(provider.extensions ?? {}).length > 0,
  );
  const visible = speaking.length === 0 ? [] : visibleOf(speaking, executor, identity);
  const names = new Set(visible.flatMap(({ extensions = {} }) => Object.keys(extensions)));
  const extensions = Object.fromEntries(Array.from(names, (name) => [name, {}]));
  const told = [instructions, ...sectionsOf(visible)].filter((text) => text !== undefined);
  return {
    capabilities: names.size === 0 ? capabilities : { ...capabilities, extensions },
    ...(told.length > 0 && { instructions: told.join("\n\n") }),
  };
}

/** Those that are there for the caller, and of whose operations, where any are known, the caller may call one. */
function visibleOf(
  providers: readonly McpProvider[],
  executor: ServedExecutor,
  identity: Identity | undefined,
): readonly McpProvider[] {
  const listed = executor.list({ identity });
  const callable = new Set(listed.map(importedFrom));
  const known = new Set(Array.from(executor.operations ?? listed, importedFrom));
  return providersFor(providers, { identity }).filter(
    ({ namespace }) => callable.has(namespace) || !known.has(namespace),
  );
}

function sectionsOf(providers: readonly McpProvider[]): readonly string[] {
  const sections: string[] = [];
  let left: number = INSTRUCTION_LIMITS.all;
  for (const { namespace, instructions = "" } of providers) {
    const { source, all } = INSTRUCTION_LIMITS;
    const clean = cleanText(cutText(instructions, all)).text.trim();
    const text = shorten(belowHeading(clean), Math.min(source, left));
    if (text === "") continue;
    left -= text.length;
    sections.push(`## ${namespace}\n\n${text}`);
  }
  return sections;
}

function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  return most === 0 ? "" : `${cutText(text, most - 1)}…`;
}

/** Headings of a source stand two levels deeper, so that none looks like that of another source. */
function belowHeading(text: string): string {
  return text.replace(/^( {0,3})(#{1,6})(?=\s|$)/gm, "$1##$2");
}
