import { UI_EXTENSION } from "../extensions.ts";
import { isForPagesAlone } from "./describe-tool.ts";
import { pageOf } from "./page-cursor.ts";
import type { PeerRequest } from "./peer-request.ts";
import type { ServedTools } from "./served-tools.ts";
import { JsonList } from "./write-answer.ts";

/** Answers `tools/list`: what this caller may call, sorted by id, without what only pages call where the client shows none. */
export function listTools(served: ServedTools, request: PeerRequest, cursor: unknown): JsonList {
  const { executor, table, limits } = served;
  const format = served.formatFor(request);
  const visible = executor.list({ identity: request.identity });
  // The protocol has no other way to keep them from the model of a client that knows no pages.
  const hidden = visible.some(isForPagesAlone) && request.extensions[UI_EXTENSION] === undefined;
  const shown = hidden ? visible.filter((operation) => !isForPagesAlone(operation)) : visible;
  const { items, ...rest } = pageOf(shown, ({ id }) => id, cursor, limits.pageSize);
  return new JsonList("tools", table.jsonOf(items, request.peer.era, format), rest);
}
