import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { OperationDirectory } from "../../openapi/server/operation-routes.ts";
import type { Gateway } from "../gateway.ts";
import { isRefused } from "../lock/changed-tools.ts";
import { isSourceVisible } from "../missing-operation.ts";
import { operationJson } from "../operation-json.ts";
import type { SourceReport } from "../sources/source.ts";

/** Characters of a description that the list tells. */
const MOST_CHARACTERS = 300;

/** Creates what tells callers of a gateway which operations and sources there are; where they run it, with all that is known of sources. */
export function createDirectory(gateway: Gateway, isForOwner: boolean): OperationDirectory {
  return {
    describe(operations, whole) {
      const reports = new Map(gateway.reports().map((report) => [report.name, report]));
      return operations.map((operation) => {
        const source = gateway.sourceOf(operation.id);
        const refused = isRefused(reports.get(source ?? ""), operation) && { refused: "changed" };
        return { ...(whole ? operationJson(operation, source) : inShort(operation, source)), ...refused };
      });
    },
    sources(identity) {
      const reports = gateway.reports();
      if (isForOwner) return reports;
      const counts = countVisible(gateway, identity);
      return reports.flatMap((report) => {
        const source = gateway.sources.find(({ name }) => name === report.name);
        if (source === undefined || !isSourceVisible(gateway, source, { identity })) return [];
        return [forCaller(report, counts.get(report.name) ?? 0)];
      });
    },
  };
}

/** How many operations of each source a caller may call. */
function countVisible(gateway: Gateway, identity: Identity | undefined): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of gateway.executor.list({ identity })) {
    const source = gateway.sourceOf(id) ?? "";
    counts.set(source, (counts.get(source) ?? 0) + 1);
  }
  return counts;
}

function inShort(
  { id, type, version, title, description }: AnyOperation,
  source: string | undefined,
): Record<string, unknown> {
  const [paragraph = ""] = description.trim().split(/\n\s*\n/, 1);
  return {
    id,
    type,
    version,
    ...(source !== undefined && { source }),
    ...(title !== undefined && { title }),
    description: paragraph.slice(0, MOST_CHARACTERS),
  };
}

/** What is told of a source to those who only call: where it is, and what is wrong with it in words of others, is for those who run it. */
function forCaller(
  { name, kind, state, startMs, protocol, title, version }: SourceReport,
  operations: number,
): object {
  const { status } = state;
  return {
    name,
    kind,
    target: "",
    state: {
      ...state,
      ...(status === "down" && { reason: state.cause ?? "It cannot be reached.", cause: undefined }),
    },
    operations,
    unusable: [],
    notes: [],
    ...(startMs !== undefined && { startMs }),
    ...(protocol !== undefined && { protocol }),
    ...(title !== undefined && { title }),
    ...(version !== undefined && { version }),
  };
}
