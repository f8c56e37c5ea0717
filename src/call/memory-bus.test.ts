import { describe, expect, it, vi } from "vitest";
import type { CallError } from "../core/errors/errors.ts";
import type { AnswerLine, Asker, Delivery, Take } from "./bus.ts";
import type { CallRequested } from "./call-events.ts";
import { createMemoryBus } from "./memory-bus.ts";

const request = (operationId = "a.x"): CallRequested => ({
  type: "call.requested",
  requestId: "r",
  operationId,
});
const asker = () => ({ hasFreshId: true, receive: vi.fn(), lost: vi.fn() }) satisfies Asker;
const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (thrown) {
    return (thrown as CallError).code;
  }
  return "nothing was thrown";
};

/** Takes requests, and keeps the lines it was given. */
function taker() {
  const taken: { delivery: Delivery; line: AnswerLine }[] = [];
  const answerer = { receive: vi.fn(), lost: vi.fn() };
  const take: Take = (delivery, line) => {
    taken.push({ delivery, line });
    return answerer;
  };
  return { taken, take, answerer };
}

describe("createMemoryBus", () => {
  it("Call: members of an operation and of its namespace are one group, asked in turn", async () => {
    const bus = createMemoryBus();
    const [one, all] = [taker(), taker()];
    await bus.join({ operationId: "a.x" }, one.take);
    await bus.join({ namespace: "a" }, all.take);
    for (let n = 0; n < 10; n++) bus.request(request(), asker());
    bus.request(request("a.y"), asker());
    expect([one.taken.length, all.taken.length]).toEqual([5, 6]);
    expect(codeOf(() => bus.request(request("b.x"), asker()))).toBe("NO_RESPONDER");
  });

  it("Call: whoever joined twice leaves twice, and leaving twice is leaving once", async () => {
    const bus = createMemoryBus();
    const { take, taken } = taker();
    const [first, second] = [
      await bus.join({ operationId: "a.x" }, take),
      await bus.join({ operationId: "a.x" }, take),
    ];
    await first.leave();
    await first.leave();
    bus.request(request(), asker());
    expect(taken).toHaveLength(1);
    await second.leave();
    expect(codeOf(() => bus.request(request(), asker()))).toBe("NO_RESPONDER");
  });

  it("Call: nothing is delivered on a line that one end has closed; what comes is counted", async () => {
    const bus = createMemoryBus();
    const { take, taken, answerer } = taker();
    await bus.join({ operationId: "a.x" }, take);
    const caller = asker();
    const line = bus.request(request(), caller);
    line.close();
    taken[0]?.line.reply({ type: "call.aborted", requestId: "r" });
    line.send({ type: "call.aborted", requestId: "r" });
    expect([caller.receive.mock.calls, answerer.receive.mock.calls, bus.counters.late]).toEqual([[], [], 1]);
  });

  it("Call: hands over who is asking, as the asking side in this process says", async () => {
    const bus = createMemoryBus();
    const { take, taken } = taker();
    await bus.join({ operationId: "a.x" }, take);
    bus.request(request(), asker(), { subject: "ada" });
    expect(taken[0]?.delivery).toMatchObject({
      identity: { subject: "ada" },
      isLocal: true,
      hasFreshId: true,
    });
    expect(bus.carriesIdentity).toBe(true);
  });

  it("Call: both ends of every call hear that the bus was closed, once", async () => {
    const bus = createMemoryBus();
    const { take, answerer } = taker();
    await bus.join({ operationId: "a.x" }, take);
    const caller = asker();
    bus.request(request(), caller);
    await bus.close();
    await bus.close();
    expect(caller.lost).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "UNAVAILABLE" }));
    expect(answerer.lost).toHaveBeenCalledOnce();
    expect(codeOf(() => bus.request(request(), asker()))).toBe("UNAVAILABLE");
  });

  it("Call: watchers hear of services that are there, come, change and go", async () => {
    const bus = createMemoryBus();
    const notice = (serviceId: string, name = "n") => ({ serviceId, name, operations: [] });
    const first = await bus.announce(notice("1"));
    const heard: string[] = [];
    const watch = bus.watch({
      found: ({ serviceId, name }) => void heard.push(`${serviceId} ${name}`),
      gone: (id) => void heard.push(`gone ${id}`),
    });
    await watch.ready;
    const second = await bus.announce(notice("2"));
    second.update(notice("2", "m"));
    await first.withdraw();
    await first.withdraw();
    watch.stop();
    await second.withdraw();
    expect(heard).toEqual(["1 n", "2 n", "2 m", "gone 1"]);
  });
});
