import type { Gateway } from "../../gateway/gateway.ts";
import type { SourceReport, SourceState } from "../../gateway/sources/source.ts";
import type { LockView, SourceView } from "../protocol.ts";
import type { CallLog } from "./call-log.ts";
import { NO_CALLS, statsBySource } from "./call-stats.ts";
import type { Viewer } from "./viewer.ts";

/** What sources are shown from. */
export interface ShownSources {
  readonly gateway: Pick<Gateway, "executor" | "reports" | "sourceOf">;
  readonly log: CallLog;
}

/** Tells of the sources of a gateway; who is no operator hears of those they may call something of, and less of each. */
export function viewsOfSources({ gateway, log }: ShownSources, viewer: Viewer): readonly SourceView[] {
  const stats = statsBySource(log, viewer);
  const calls = (name: string) => stats.get(name) ?? NO_CALLS;
  const reports = gateway.reports();
  if (viewer.isOperator)
    return reports.map((report) => ({ ...wholeView(report), calls: calls(report.name) }));
  const counts = callableCounts(gateway, viewer);
  return reports.flatMap((report) => {
    const operations = counts.get(report.name);
    return operations === undefined ? [] : [{ ...partView(report), operations, calls: calls(report.name) }];
  });
}

function callableCounts(gateway: ShownSources["gateway"], { identity }: Viewer): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of gateway.executor.list({ identity })) {
    const name = gateway.sourceOf(id);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function wholeView({ changed, state, ...report }: SourceReport): Omit<SourceView, "calls"> {
  return {
    ...report,
    state: toState(state, (down) => down.reason),
    ...(changed !== undefined && { lock: toLock(changed) }),
  };
}

function partView(report: SourceReport): Omit<SourceView, "calls" | "operations"> {
  const { name, kind, state, startMs, protocol, title, version } = report;
  return {
    name,
    kind,
    state: toState(state, ({ cause }) => cause ?? "It cannot be used right now."),
    unusable: [],
    notes: [],
    ...(startMs !== undefined && { startMs }),
    ...(protocol !== undefined && { protocol }),
    ...(title !== undefined && { title }),
    ...(version !== undefined && { version }),
  };
}

type DownState = Extract<SourceState, { readonly status: "down" }>;

function toState(state: SourceState, reasonOf: (state: DownState) => string): SourceView["state"] {
  if (state.status !== "down") return state;
  const { since, retryAt } = state;
  return { status: "down", since, reason: reasonOf(state), ...(retryAt !== undefined && { retryAt }) };
}

function toLock(changed: NonNullable<SourceReport["changed"]>): LockView {
  return { tools: changed.map(({ tool, kind, diff }) => ({ tool, state: kind, diff })) };
}
