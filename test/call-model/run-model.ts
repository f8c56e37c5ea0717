import fc from "fast-check";
import { vi } from "vitest";
import { checkEnd } from "./check-world.ts";
import { COMMANDS, type Command, MOST_STEPS } from "./commands.ts";
import type { Network } from "./network.ts";
import { type Tally, tallyWorld } from "./tally.ts";
import { type Plant, World } from "./world.ts";

/** How long and how often the model is run. */
export interface ModelRunOptions {
  readonly network: () => Network;
  readonly runs: number;
  readonly seed: number;
  /** @default none */
  readonly plant?: (() => Plant) | undefined;
  /** Where what happened is counted. */
  readonly tally?: Tally;
}

/** Drawn, of which those that make no sense when their turn comes are left out. */
const DRAWN = 2.5 * MOST_STEPS;
const TIMERS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] as const;

/** Runs random commands against the model and the system; what it returns says whether and where they differed. */
export async function runModel(options: ModelRunOptions): Promise<fc.RunDetails<[Iterable<Command>]>> {
  const { network, runs, seed, plant, tally } = options;
  const commands = fc.commands(COMMANDS, { maxCommands: DRAWN, size: "max" });
  const property = fc.asyncProperty(commands, async (chosen) => {
    vi.useFakeTimers({ toFake: [...TIMERS], now: 0 });
    // Pauses between tries are random by up to a half; here they are the shortest.
    const random = vi.spyOn(Math, "random").mockReturnValue(0);
    try {
      const world = new World(network(), plant?.());
      await world.join();
      await fc.asyncModelRun(() => ({ model: world, real: world }), chosen);
      await world.end();
      checkEnd(world);
      if (tally !== undefined) tallyWorld(tally, world);
    } finally {
      random.mockRestore();
      vi.useRealTimers();
    }
  });
  return fc.check(property, { numRuns: runs, seed });
}
