import type { DescribedTool } from "./describe-tool.ts";
import { pageOf } from "./page-cursor.ts";
import type { PeerRequest } from "./peer-request.ts";
import type { ServedTools } from "./served-tools.ts";
import { toSplicedList } from "./spliced-list.ts";

/** Tools from which on a page is sent as text at hand. */
const WORTH_SPLICING = 20;

/** What `tools/list` answers. */
export interface ToolPage {
  readonly tools: readonly DescribedTool[];
  readonly nextCursor?: string;
  readonly [field: string]: unknown;
}

/** Answers `tools/list`: what this caller may call, sorted by id. */
export function listTools(served: ServedTools, request: PeerRequest, cursor: unknown): ToolPage {
  const { executor, table, limits } = served;
  const format = served.formatFor(request);
  const visible = executor.list({ identity: request.identity });
  const { items, ...rest } = pageOf(visible, ({ id }) => id, cursor, limits.pageSize);
  const { era, splices } = request.peer;
  if (splices && items.length >= WORTH_SPLICING) {
    const list = toSplicedList(table.jsonOf(items, era, format), request.context.http?.req);
    return { tools: list as readonly unknown[] as readonly DescribedTool[], ...rest };
  }
  return { tools: items.map((operation) => table.toolOf(operation, era, format)), ...rest };
}
