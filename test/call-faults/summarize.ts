import type { Histories, Verdict } from "./check-history.ts";
import type { Damage } from "./nemesis.ts";
import { WORK } from "./workload.ts";

/** One paragraph about a run. */
export function summarize(
  { clients, workers, collected }: Histories,
  verdict: Verdict,
  damage: Damage,
): string {
  const events = clients.flatMap((client) => client.events);
  const count = (event: string): number => events.filter((one) => one.event === event).length;
  const kinds = { plain: 0, stream: 0, durable: 0 };
  const codes: Record<string, number> = {};
  const ends: Record<string, number> = {};
  const counters: Record<string, number> = {};
  for (const event of events) {
    if (event.event === "asked") kinds[WORK[event.operationId]?.kind ?? "plain"] += 1;
    if (event.event === "settled") add(codes, event.outcome.ok ? "ok" : event.outcome.code);
    if (event.event !== "closed") continue;
    for (const [reason, times] of Object.entries(event.counters)) add(counters, reason, times);
  }
  for (const { outcome } of collected) add(ends, outcome.ok ? "ok" : outcome.code);
  const runs = workers.flatMap((worker) => worker.events).filter(({ event }) => event === "run").length;
  const { kills, stops, restarts, killsUnderLoad } = damage;
  const { worstMs, excused, longestStallMs, stalledMs } = verdict.lateness;
  return [
    `${count("asked")} calls (${list(kinds)}), ${runs} runs, ${count("accepted")} stored calls accepted.`,
    `Kills: ${list(kills)}, ${killsUnderLoad} of them under full load; stops: ${list(stops)}; broker restarts: ${restarts}.`,
    `Settled: ${list(codes)}; ends of stored calls: ${list(ends)}; submits refused: ${count("refused")}.`,
    `Latest settle: ${Math.round(worstMs)} ms past its deadline, ${excused} more excused by their own process, which was stalled or busy`,
    `(the longest ${Math.round(longestStallMs)} ms, all ${Math.round(stalledMs / 1_000)} s). Dropped by clients that were not killed: ${list(counters)}.`,
    `Problems: ${verdict.problems.length}.`,
  ].join(" ");
}

function add(counts: Record<string, number>, name: string, times = 1): void {
  counts[name] = (counts[name] ?? 0) + times;
}

function list(counts: Readonly<Record<string, number>>): string {
  const named = Object.entries(counts).filter(([, times]) => times > 0);
  return named.map(([name, times]) => `${name} ${times}`).join(", ") || "none";
}
