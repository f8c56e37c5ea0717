import { expect, it } from "vitest";
import { runTaskStorm } from "./fleet/task-storm.js";
import { natsSuite } from "./nats-server.ts";
import { HARDENED } from "./run-node.ts";
import { scaled } from "./runs.ts";

const SECONDS = scaled(HARDENED ? 15 : 30);

natsSuite("Tasks of a fleet of gateways", () => {
  it("are lost by nobody, settle once, and are seen by their owner alone, while gateways and brokers are killed", async () => {
    const brokerEveryMs = (SECONDS * 1_000) / 3;
    const { counts, problems } = await runTaskStorm({ seconds: SECONDS, running: 60, brokerEveryMs });
    console.log(`tasks: ${JSON.stringify(counts)}`);
    expect(problems.slice(0, 20)).toEqual([]);
    expect(counts.settled).toBe(counts.created);
    expect(Math.min(counts.replicas, counts.brokers, counts.settled)).toBeGreaterThan(0);
  });
});
