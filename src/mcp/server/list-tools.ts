import { pageOf } from "./page-cursor.ts";
import type { PeerRequest } from "./peer-request.ts";
import type { ServedTools } from "./served-tools.ts";
import { JsonList } from "./write-answer.ts";

/** Answers `tools/list`: what this caller may call, sorted by id. */
export function listTools(served: ServedTools, request: PeerRequest, cursor: unknown): JsonList {
  const { executor, table, limits } = served;
  const format = served.formatFor(request);
  const visible = executor.list({ identity: request.identity });
  const { items, ...rest } = pageOf(visible, ({ id }) => id, cursor, limits.pageSize);
  return new JsonList("tools", table.jsonOf(items, request.peer.era, format), rest);
}
