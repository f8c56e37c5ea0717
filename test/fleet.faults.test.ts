import { expect, it } from "vitest";
import { checkSummary } from "./fleet/history.js";
import { findNginx } from "./fleet/nginx.js";
import { runRollingRestart, runStorm } from "./fleet/storm.js";
import { natsSuite } from "./nats-server.ts";
import { HARDENED } from "./run-node.ts";
import { scaled } from "./runs.ts";

const SECONDS = scaled(HARDENED ? 15 : 40);
/** Kills come as often as in a long run, and brokers are killed more often: a few of them make no average. */
const MOST_UNKNOWN = 0.05;

natsSuite("A fleet of gateways", () => {
  it("settles every call once and runs no order twice, while gateways and brokers are killed under load", async () => {
    const brokerEveryMs = (SECONDS * 1_000) / 3;
    const { summary, problems, kills } = await runStorm({ seconds: SECONDS, brokerEveryMs });
    console.log(`fleet: ${JSON.stringify({ ...summary, ...kills })}`);
    expect(problems.slice(0, 20)).toEqual([]);
    expect(checkSummary(summary, MOST_UNKNOWN)).toEqual([]);
    expect(Math.min(kills.replicas, kills.brokers)).toBeGreaterThan(0);
  });

  it.for([
    ["a balancer that tries nothing twice", false],
    ["nginx as the example has it", true],
  ] as const)(
    "loses nothing while every gateway is restarted in order under load, behind %s",
    async ([, nginx], { skip }) => {
      if (nginx && findNginx() === undefined && process.env["CI"] !== "true") skip("nginx is not installed");
      const { summary, problems, restarts, counts, newSessions } = await runRollingRestart({ nginx });
      console.log(`rolling restart: ${JSON.stringify(summary)}`);
      expect(problems.slice(0, 20)).toEqual([]);
      const { calls, succeeded, retried, runs } = summary;
      expect({ failed: calls - succeeded, newSessions }).toEqual({ failed: 0, newSessions: 0 });
      // nginx does not look at `/ready`: a gateway that has just started may ask for another try.
      if (!nginx)
        expect({ retried, cut: counts.cut, refused: counts.refused }).toEqual({
          retried: 0,
          cut: 0,
          refused: 0,
        });
      expect(runs).toBeGreaterThan(0);
      for (const { states, direct, isLate } of restarts) {
        // Ready, then not any more, then nobody there, and ready again: by way of 503, unless it was too quick to be seen.
        expect(states.filter((status, at) => status !== 503 || at === 1)).toEqual([200, 503, 0, 200]);
        expect(direct).toEqual([200, 200, 200]);
        expect(isLate).toBe(false);
      }
    },
  );
});
