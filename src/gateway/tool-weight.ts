import { setImmediate } from "node:timers/promises";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import { estimateTokens } from "../formats/preview/token-budget.ts";
import { plainFormat } from "../mcp/server/results/plain-format.ts";
import { CATALOGUE_TOOLS } from "../mcp/server/tools/catalogue.ts";
import { describeTool, isForPagesAlone } from "../mcp/server/tools/describe-tool.ts";
import type { LoadedConfig } from "./config/loaded-config.ts";
import type { Gateway } from "./gateway.ts";

/** A tool list beyond so many tokens leaves a model little room for its work, and hosts begin to cut it. */
export const HEAVY_TOKENS = 25_000;

/** How much of a model's context the tools of a gateway take, as estimates. */
export interface ToolWeight {
  /** How many tools `tools/list` has for somebody who may call everything. */
  readonly tools: number;
  /** Tokens of names, descriptions and input schemas: what hosts hand to their models. */
  readonly tokens: number;
  /** Tokens of the whole list, output schemas and `_meta` included, for hosts that hand over all of it. */
  readonly listTokens: number;
  /** Whether the tools are those of the catalogue (`serve.mcp.catalogue`), however many operations there are. */
  readonly isCatalogue: boolean;
  /** What each source adds to a plain list, heaviest first; a catalogue has the same size without them. */
  readonly sources: readonly SourceWeight[];
}

/** What one source adds to the tool list. */
interface SourceWeight {
  readonly name: string;
  readonly tools: number;
  readonly tokens: number;
  readonly listTokens: number;
}

interface Tokens {
  readonly tokens: number;
  readonly listTokens: number;
}

/** Milliseconds of measuring after which other work gets its turn. */
const TURN_MS = 20;

/** Operations are replaced when they change, so each is measured once. */
const known = new WeakMap<AnyOperation, Tokens>();

/**
 * Estimates what the tool list of a gateway takes of a model's context. A thousand tools take seconds the first time, most of which the
 * first `tools/list` saves; requests are answered meanwhile.
 */
export async function toolWeight(
  gateway: Pick<Gateway, "executor" | "sourceOf">,
  { config }: Pick<LoadedConfig, "config">,
): Promise<ToolWeight> {
  const bySource = new Map<string, SourceWeight>();
  let turnEnds = performance.now() + TURN_MS;
  for (const operation of [...gateway.executor.operations]) {
    if (performance.now() > turnEnds) {
      await setImmediate();
      turnEnds = performance.now() + TURN_MS;
    }
    if (operation.visibility === "internal" || isForPagesAlone(operation)) continue;
    const name = gateway.sourceOf(operation.id) ?? "";
    const before = bySource.get(name) ?? { name, tools: 0, tokens: 0, listTokens: 0 };
    const { tokens, listTokens } = weigh(operation);
    bySource.set(name, {
      name,
      tools: before.tools + 1,
      tokens: before.tokens + tokens,
      listTokens: before.listTokens + listTokens,
    });
  }
  const sources = [...bySource.values()].sort((a, b) => b.tokens - a.tokens || (a.name < b.name ? -1 : 1));
  const { mcp } = config.serve ?? {};
  const isCatalogue = typeof mcp === "object" && mcp.catalogue === true;
  if (isCatalogue) {
    const tokens = estimateTokens(JSON.stringify(CATALOGUE_TOOLS));
    return { tools: CATALOGUE_TOOLS.length, tokens, listTokens: tokens, isCatalogue, sources };
  }
  const sum = (of: (source: SourceWeight) => number): number =>
    sources.reduce((all, source) => all + of(source), 0);
  return {
    tools: sum(({ tools }) => tools),
    tokens: sum(({ tokens }) => tokens),
    listTokens: sum(({ listTokens }) => listTokens),
    isCatalogue,
    sources,
  };
}

function weigh(operation: AnyOperation): Tokens {
  const before = known.get(operation);
  if (before !== undefined) return before;
  const tool = describeTool(operation, {
    name: operation.id.replace(".", "_"),
    era: "modern",
    format: plainFormat,
  });
  const { name, description, inputSchema, ...rest } = tool;
  const tokens = estimateTokens(JSON.stringify({ name, description, inputSchema }));
  const weight = { tokens, listTokens: tokens + estimateTokens(JSON.stringify(rest)) };
  known.set(operation, weight);
  return weight;
}

/** What makes a heavy tool list lighter. */
export const LIGHTER_TOOLS =
  'Set "serve": { "mcp": { "catalogue": true } } to list four tools that search, describe and call the rest, or list fewer with "policy": { "allow": […] } of a source; docs/recipes.md has both.';

/** Says in one line how many tools there are and what they take of a model's context. */
export function describeWeight({ tools, tokens, listTokens, isCatalogue }: ToolWeight): string {
  const what = `${tools.toLocaleString("en-US")} ${isCatalogue ? "tools of the catalogue" : tools === 1 ? "tool" : "tools"}`;
  const whole = listTokens > 2 * tokens ? ` (${roundTokens(listTokens)} with output schemas)` : "";
  return `${what}, about ${roundTokens(tokens)} tokens of a model's context${whole}`;
}

/** Writes an estimate with two digits that count: `870`, `12,000`, `2.1 million`. */
export function roundTokens(tokens: number): string {
  if (tokens >= 950_000) return `${(tokens / 1_000_000).toFixed(1)} million`;
  const digits = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, tokens))) - 1);
  return (Math.round(tokens / digits) * digits).toLocaleString("en-US");
}
