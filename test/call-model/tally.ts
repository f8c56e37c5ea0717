import type { Outcome } from "./model-call.ts";
import type { World } from "./world.ts";

/** How often something happened, by name: a model that never gets anywhere agrees with everything. */
export type Tally = Map<string, number>;

/** Adds what happened in one run. */
export function tallyWorld(tally: Tally, world: World): void {
  const count = (name: string, times = 1) => tally.set(name, (tally.get(name) ?? 0) + times);
  count("steps", world.steps);
  for (const { settlements } of world.calls)
    for (const outcome of settlements) count(`call ${nameOf(outcome)}`);
  for (const { reads } of world.streams) for (const read of reads) count(`read ${nameOf(read ?? "done")}`);
  for (const { tried } of world.asking.calls) if (tried > 1) count("tried again");
  const sides = [...world.maps, ...world.services.map(({ handler }) => handler)];
  for (const { counters } of sides) {
    for (const [reason, times] of Object.entries(counters)) if (times > 0) count(`dropped ${reason}`, times);
  }
}

function nameOf(outcome: Outcome): string {
  if (outcome === "done") return "done";
  if ("code" in outcome) return outcome.code;
  return outcome.isError ? "tool error" : "value";
}
