import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { expect, it } from "vitest";
import { openDurableCalls } from "../src/call/nats/index.ts";
import { checkHistory, type Histories } from "./call-faults/check-history.ts";
import { Fleet } from "./call-faults/fleet.ts";
import type { Fetched, History } from "./call-faults/history.ts";
import { Nemesis } from "./call-faults/nemesis.ts";
import { fetchEnd } from "./call-faults/outcome.ts";
import { summarize } from "./call-faults/summarize.ts";
import { PREFIX } from "./call-faults/workload.ts";
import { sleep } from "./make-operation.ts";
import { natsSuite, startNats } from "./nats-server.ts";
import { createRandom } from "./random.ts";
import { HARDENED } from "./run-node.ts";
import { scaled } from "./runs.ts";

/** The flags of the second run change nothing about processes that are killed, so that a shorter storm will do. */
const SECONDS = scaled(HARDENED ? 10 : 45);
const SEED = Number(process.env["WAYBILL_FAULTS_SEED"] ?? Date.now() % 2 ** 31);
const WORKERS = 4;
const CLIENTS = 2;
/** Of each client, so that one may be killed and there are still as many. */
const IN_FLIGHT = 200;
const LEAST_KILLS = SECONDS < 45 ? 3 : 20;
/** After that, whatever the storm broke has been noticed; then calls go on for a while in peace. */
const RECOVER_MS = 6_000;
const CALM_MS = 2_500;
/** Longer than any call may take, on a busy machine too. */
const FINISH_MS = 120_000;
const COLLECT_MS = 120_000 + SECONDS * 500;
const COLLECTED_AT_A_TIME = 100;

/** Asks, as somebody who has just come, how every call ended that was ever accepted. */
async function collect(url: string, clients: readonly History[]): Promise<Fetched[]> {
  const ids = clients.flatMap(({ events }) =>
    events.flatMap((one) => (one.event === "accepted" ? [one.id] : [])),
  );
  const connection = await connect({ servers: url });
  try {
    const calls = await openDurableCalls(connection, { prefix: PREFIX });
    const until = performance.now() + COLLECT_MS;
    const collected: Fetched[] = [];
    const fetchNext = async (): Promise<void> => {
      for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
        const timeoutMs = Math.max(100, until - performance.now());
        collected.push({ event: "fetched", id, outcome: await fetchEnd(calls, id, timeoutMs) });
      }
    };
    await Promise.all(Array.from({ length: COLLECTED_AT_A_TIME }, fetchNext));
    return collected;
  } finally {
    await connection.close();
  }
}

natsSuite("Call faults", () => {
  it(
    "Call faults: nothing acknowledged is lost and nothing runs twice while processes and the broker are killed, stopped and restarted",
    async () => {
      console.log(`call faults: ${SECONDS} s, WAYBILL_FAULTS_SEED=${SEED}`);
      const random = createRandom(SEED);
      const server = await startNats({ jetstream: true });
      const folder = mkdtempSync(join(tmpdir(), "waybill-faults-"));
      const fleet = new Fleet(folder, server.url);
      try {
        await fleet.build();
        const startClient = () =>
          void fleet.start("client", String(random.below(2 ** 31)), String(IN_FLIGHT));
        for (let index = 0; index < WORKERS; index++) fleet.start("worker");
        await fleet.allReady();
        for (let index = 0; index < CLIENTS; index++) startClient();
        await fleet.allReady();
        const options = { random, seconds: SECONDS, leastKills: LEAST_KILLS, load: IN_FLIGHT, startClient };
        const damage = await new Nemesis(fleet, server, options).rage();
        await fleet.allReady();
        await sleep(RECOVER_MS);
        fleet.callItCalm();
        await sleep(CALM_MS);
        await fleet.finishClients(FINISH_MS);
        const clients = fleet.histories("client");
        const collected = await collect(server.url, clients);
        await fleet.end();
        const histories: Histories = { clients, workers: fleet.histories("worker"), collected };
        const verdict = checkHistory(histories);
        console.log(`call faults: ${summarize(histories, verdict, damage)}`);
        expect(fleet.deaths).toEqual([]);
        expect(verdict.problems.slice(0, 20)).toEqual([]);
        expect(damage.killsUnderLoad).toBeGreaterThanOrEqual(LEAST_KILLS);
      } finally {
        await fleet.end();
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    },
    SECONDS * 2_000 + 900_000,
  );
});
