import type { DescribedTool } from "./describe-tool.ts";
import { pageOf } from "./page-cursor.ts";
import type { PeerRequest } from "./peer-request.ts";
import type { ServedTools } from "./served-tools.ts";

/** What `tools/list` answers. */
export interface ToolPage {
  readonly tools: readonly DescribedTool[];
  readonly nextCursor?: string;
  readonly [field: string]: unknown;
}

/** Answers `tools/list`: what this caller may call, sorted by id. */
export function listTools(served: ServedTools, request: PeerRequest, cursor: unknown): ToolPage {
  const { executor, table, limits } = served;
  const format = served.formatFor(request.context);
  const visible = executor.list({ identity: request.identity });
  const { items, ...rest } = pageOf(visible, ({ id }) => id, cursor, limits.pageSize);
  return { tools: items.map((operation) => table.toolOf(operation, request.peer.era, format)), ...rest };
}
