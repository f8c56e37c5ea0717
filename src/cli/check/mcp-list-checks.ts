import { isPlainObject } from "../../core/json/json-value.ts";
import { estimateTokens } from "../../formats/preview/estimate-tokens.ts";
import { listPages } from "../../mcp/client/list-pages.ts";
import { counted } from "../terminal/counted.ts";
import type { CheckList } from "./check-report.ts";
import type { CheckId } from "./check-titles.ts";
import { describeAnswer, type McpPeer } from "./mcp-peer.ts";

/** Bounds of what is listed. */
const LIMITS = { tools: 10_000, pages: 1_000, definitionBytes: 1_048_576, listBytes: 67_108_864 } as const;

/** Tokens of all definitions together past which a model has little room left. */
const MOST_TOKENS = 10_000;

/** Which list is read. */
export interface ListPlan {
  /** Such as "tools/list". */
  readonly method: string;
  readonly field: string;
  readonly id: CheckId;
}

/** What a list holds, and what went wrong while it was read. */
interface Listing {
  readonly entries: readonly unknown[] | undefined;
  readonly faults: readonly string[];
  readonly pages: number;
}

/** Reads all pages of a list, and says so; nothing where it cannot be read. */
export async function checkList(
  list: CheckList,
  peer: McpPeer,
  plan: ListPlan,
): Promise<readonly unknown[] | undefined> {
  const { entries, faults, pages } = await readList(peer, plan);
  for (const fault of faults) list.fail(plan.id, "", fault);
  if (entries !== undefined && faults.length === 0) {
    const paged = pages > 1 ? ` on ${pages} pages` : "";
    list.pass(plan.id, "", `${plan.method} lists ${entries.length} ${plan.field}${paged}.`);
  }
  return entries;
}

/** Reads the same list once more and compares. */
export async function checkStable(
  list: CheckList,
  peer: McpPeer,
  plan: ListPlan,
  first: readonly unknown[],
): Promise<void> {
  const id = "mcp.list.stable";
  const { entries } = await readList(peer, plan);
  if (entries === undefined) {
    list.fail(id, "", "The second listing failed, though the first did not.");
    return;
  }
  const before = byName(first);
  const after = byName(entries);
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const different = names.filter((name) => before.get(name) !== after.get(name));
  const isReordered = different.length === 0 && JSON.stringify(first) !== JSON.stringify(entries);
  for (const name of different.slice(0, 20)) {
    const what = !after.has(name) ? "is gone" : !before.has(name) ? "is new" : "has another definition";
    list.fail(id, name, `It ${what} in a second listing right after the first.`, {
      evidence: after.get(name),
    });
  }
  if (different.length > 20)
    list.fail(
      id,
      "",
      `${counted(different.length - 20, "further tool differs", "further tools differ")} as well.`,
    );
  if (isReordered) list.warn(id, "", "A second listing has the same tools in another order.");
  else if (different.length === 0) list.pass(id, "", "A second listing is the same.");
}

/** Estimates what the definitions cost a model. */
export function checkSize(list: CheckList, entries: readonly unknown[]): void {
  if (entries.length === 0) return;
  const tokens = estimateTokens(JSON.stringify(entries));
  const message = `The definitions of ${counted(entries.length, "tool")} take about ${tokens} tokens`;
  if (tokens > MOST_TOKENS) list.warn("mcp.list.size", "", `${message}, more than ${MOST_TOKENS}.`);
  else list.pass("mcp.list.size", "", `${message}.`);
}

async function readList(peer: McpPeer, { method, field }: ListPlan): Promise<Listing> {
  const faults: string[] = [];
  let pages = 0;
  const asking = {
    request: async (wanted: string, params: Readonly<Record<string, unknown>> | undefined) => {
      pages += 1;
      const answer = await peer.ask(wanted, params);
      if (answer.kind === "result") return answer.result;
      throw new ListFailed(describeAnswer(answer));
    },
  };
  try {
    const warn = (fault: string) => void faults.push(fault);
    const onOversized = ({ name, reason }: { name: string; reason: string }) =>
      warn(`A definition is left out${name === "" ? "" : `, "${name}"`}. ${reason}`);
    const request = { timeoutMs: peer.timeoutMs };
    const entries = await listPages(asking, { method, field, limits: LIMITS, request, warn, onOversized });
    return { entries, faults, pages };
  } catch (thrown) {
    if (!(thrown instanceof ListFailed)) throw thrown;
    return { entries: undefined, faults: [...faults, `${method} failed. ${thrown.message}`], pages };
  }
}

class ListFailed extends Error {}

function byName(entries: readonly unknown[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of entries) {
    const name = isPlainObject(entry) && typeof entry["name"] === "string" ? entry["name"] : "";
    found.set(name, `${found.get(name) ?? ""}${JSON.stringify(entry)}`);
  }
  return found;
}
