import { afterAll, beforeAll, expect, it } from "vitest";
import { PendingRequestMap, serveCalls } from "../src/call/index.ts";
import { connectNatsBus } from "../src/call/nats/index.ts";
import { CallError, OperationRegistry } from "../src/index.ts";
import { query, sleep } from "./make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "./nats-server.ts";

const CALLS = 10_000;
const IN_FLIGHT = 64;
const MEMBERS = 3;
const SICK = 1;
/** Milliseconds of one try: long for a member that is well, on a machine that is busy too. */
const ATTEMPT_MS = 2_000;
/** Short, so that the sick member is tried again several times. */
const EJECTION_MS = 200;

natsSuite("one sick member of three", () => {
  let server: NatsServer | undefined;
  const ends: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(async () => {
    await Promise.all(ends.map((end) => end()));
    await server?.stop();
  });

  const connect = async (ejectionMs?: number) => {
    const bus = await connectNatsBus({ servers: server?.url ?? "" }, { ejectionMs });
    ends.push(() => bus.close());
    return bus;
  };

  it.each([
    ["answers UNAVAILABLE", () => Promise.reject(new CallError("UNAVAILABLE", "Sick."))],
    ["has no room", () => Promise.reject(new CallError("RESOURCE_EXHAUSTED", "Full."))],
    ["hangs", () => new Promise(() => {})],
    ["is slow", () => sleep(2 * ATTEMPT_MS)],
  ] as const)(
    "RE-29 a member that %s: of 10,000 calls none fails, and it gets less than a fiftieth of those after the first",
    async (how, fail) => {
      const id = `sick.${how.replaceAll(" ", "-").toLowerCase()}`;
      const counts = Array.from({ length: MEMBERS }, () => 0);
      for (const member of counts.keys()) {
        const handler = async () => {
          counts[member] = (counts[member] ?? 0) + 1;
          if (member === SICK) await fail();
          return member;
        };
        const work = query(id, handler, { annotations: { idempotent: true } });
        await serveCalls(new OperationRegistry([work]), await connect());
      }
      const bus = await connect(EJECTION_MS);
      const map = new PendingRequestMap(bus);
      const retry = { attempts: 3, attemptTimeoutMs: ATTEMPT_MS };
      let left = CALLS;
      let failed = 0;
      const work = async () => {
        while (left-- > 0) await map.call(id, 1, { retry }).catch(() => failed++);
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, work));
      // Those that were sent before anything was known of the member.
      const first = Math.min(counts[SICK] ?? 0, IN_FLIGHT);
      expect(failed).toBe(0);
      expect(first).toBeGreaterThan(0);
      expect((counts[SICK] ?? 0) - first).toBeLessThan(0.02 * CALLS);
      expect(bus.counters.ejected).toBeGreaterThan(0);
      await map.close();
    },
  );
});
