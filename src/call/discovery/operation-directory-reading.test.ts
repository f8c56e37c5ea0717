import { describe, expect, it, vi } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { sleep } from "../../../test/make-operation.ts";
import { notice, openDirectory, service } from "../../../test/open-directory.ts";
import { stopClock } from "../../../test/stop-clock.ts";
import type { OperationNotice, ServiceNotice } from "./service-notice.ts";

/** A service with so many operations that it is read bit by bit. */
const large = (serviceId: string, count = 200, extra: Partial<OperationNotice> = {}): ServiceNotice => {
  const operations = Array.from({ length: count }, (_, i) => notice(`${serviceId}.n${i}`, extra));
  return service(serviceId, ...operations);
};

/**
 * Runs something; fails when everything else had to wait for too much of it, in processor time: others may be busy too. That counts the
 * threads of the engine as well, which clean up and compile in bursts; work that is not divided waits for all of it.
 */
async function expectShortWaits(work: () => Promise<unknown>): Promise<void> {
  const start = cpuMs();
  let [last, longest] = [start, 0];
  const look = () => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  await work();
  look();
  clearInterval(timer);
  expect(longest).toBeLessThan(Math.max(250, (last - start) / 2));
}

describe("OperationDirectory, while it reads a large notice", () => {
  it("Discovery: reads 49 operations at once, and 50 while other work goes on", async () => {
    stopClock();
    const { found, ids } = openDirectory();
    found(large("small", 49));
    expect(ids().length).toBe(49);
    found(large("large", 50));
    expect(ids().length).toBe(49);
    await vi.waitFor(() => expect(ids().length).toBe(99), 20_000);
  });

  it("Discovery: shows all of a service or nothing, and tells its changes together", async () => {
    const { found, ids, directory, heard } = openDirectory();
    const seen = new Set<number>();
    found(large("s", 2_000));
    while (ids().length === 0) {
      seen.add(directory.services.length);
      await sleep(0);
    }
    expect([ids().length, [...seen]]).toEqual([2_000, [0]]);
    expect(heard().map((changes) => changes.length)).toEqual([2_000]);
    found(large("s", 1_999, { title: "new" }));
    while (directory.get("s.n0")?.title === undefined) {
      expect(ids().length).toBe(2_000);
      await sleep(0);
    }
    expect(heard().map((changes) => changes.length)).toEqual([2_000]);
  });

  it("Discovery: is ready once what is being read has been read", async () => {
    const { found, ids, directory } = openDirectory();
    found(large("s"));
    found(large("t"));
    await Promise.resolve();
    expect(directory.isReady).toBe(false);
    await directory.ready;
    expect([directory.isReady, ids().length]).toEqual([true, 400]);
  });

  it("Discovery: is ready with what a service said last, where it spoke twice", async () => {
    const { found, directory } = openDirectory();
    found(large("s", 5_000));
    setTimeout(() => found(large("s", 60, { title: "second" })), 1);
    await directory.ready;
    expect(directory.get("s.n59")?.title).toBe("second");
    expect(directory.operations.length).toBe(60);
  });

  it("Discovery: becomes ready though a service never stops talking", async () => {
    const { found, directory } = openDirectory();
    found(large("s"));
    const talking = setInterval(() => found(large("s")), 0);
    await directory.ready;
    clearInterval(talking);
    expect(directory.isReady).toBe(true);
    directory.stop();
  });

  it.each([
    ["large", 300],
    ["small", 3],
  ])("Discovery: forgets what it is reading when a %s notice of that service comes", async (_, count) => {
    const { found, heard, directory } = openDirectory();
    found(large("s", 400, { title: "first" }));
    found(large("s", count, { title: "second" }));
    await directory.ready;
    await sleep(20);
    expect(directory.operations.map(({ title }) => title)).toEqual(Array(count).fill("second"));
    expect(heard().length).toBe(1);
  });

  it("Discovery: forgets what it is reading when that service leaves", async () => {
    const { found, gone, heard, directory } = openDirectory();
    found(large("s"));
    found(large("t"));
    gone("s");
    await directory.ready;
    await sleep(20);
    expect(directory.services.map(({ serviceId }) => serviceId)).toEqual(["t"]);
    expect(heard().length).toBe(1);
  });

  it("Discovery: lets go of a service that leaves while its next notice is being read", async () => {
    const { found, gone, ids, directory } = openDirectory();
    found(service("s", notice("a.x")));
    found(large("s"));
    gone("s");
    await directory.ready;
    await sleep(20);
    expect([ids(), directory.services]).toEqual([[], []]);
  });

  it("Discovery: reads nothing any more once stopped, and leaves no timer", async () => {
    const { found, ids, directory, vetted } = openDirectory();
    found(large("s", 3_000));
    await sleep(5);
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const reading = timers();
    directory.stop();
    expect(timers()).toBe(reading - 1);
    const before = vetted.length;
    found(large("t", 3_000));
    expect(timers()).toBe(reading - 1);
    await directory.ready;
    await sleep(20);
    expect([vetted.length, ids()]).toEqual([before, []]);
  });

  it("Discovery: vets what replicas offer once, though all of them came at once", async () => {
    const { found, vetted, directory } = openDirectory();
    for (const serviceId of ["r1", "r2", "r3"]) found({ ...large("s"), serviceId });
    await directory.ready;
    expect([vetted.length, directory.services.length, directory.conflicts]).toEqual([200, 3, []]);
  });

  it("Discovery: counts services that are being read among those it may hold", async () => {
    const { found, gone, directory } = openDirectory({ limits: { services: 2 } });
    for (const serviceId of ["s", "t", "u", "s"]) found(large(serviceId));
    const reason = "There are 2 services already; it is ignored.";
    expect(directory.unusable).toEqual([{ serviceId: "u", reason }]);
    gone("t");
    found(large("u"));
    await directory.ready;
    expect(directory.services.map(({ serviceId }) => serviceId)).toEqual(["s", "u"]);
  });

  it("Discovery: does not say that nobody offers what it may be about to read", async () => {
    const { found, directory } = openDirectory();
    found(large("s"));
    expect(directory.mayHaveOffered("a.x")).toBe(true);
    await directory.ready;
    expect([directory.mayHaveOffered("a.x"), directory.mayHaveOffered("s.n0")]).toEqual([false, true]);
  });

  const object = (i: number) => ({ properties: { a: { type: "string", pattern: `^(a+)+${i}$` } } });
  const costly = (i: number) => ({
    allOf: Array.from({ length: 10 }, (_, k) => ({ pattern: `^[a-z]{1,1000}x*${i}y${k}*z` })),
  });
  it.each<[string, () => readonly object[]]>([
    ["10,000 operations", () => Array.from({ length: 10_000 }, () => ({}))],
    ["5,000 with schemas", () => Array.from({ length: 5_000 }, (_, i) => ({ inputSchema: object(i) }))],
    ["40 with costly patterns", () => Array.from({ length: 40 }, (_, i) => ({ inputSchema: costly(i) }))],
    [
      "one with costly patterns in all of its errors",
      () => [{ errors: Array.from({ length: 40 }, (_, i) => ({ code: `E${i}`, schema: costly(i + 50) })) }],
    ],
  ])("Discovery: keeps nobody waiting for %s", async (_, make) => {
    const operations = make().map((extra, i) => ({ ...notice("a.x"), name: `n${i}`, ...extra }));
    const given = { serviceId: "s", name: "s", operations };
    const { found, ids, directory } = openDirectory();
    await expectShortWaits(async () => {
      found(given);
      await directory.ready;
    });
    expect([ids().length, directory.unusable]).toEqual([operations.length, []]);
    directory.stop();
  });

  it("Discovery: keeps nobody waiting for many small notices with costly patterns", async () => {
    const { found, directory } = openDirectory();
    await expectShortWaits(async () => {
      for (let i = 0; i < 40; i++) found(service(`s${i}`, notice("a.x", { inputSchema: costly(i + 100) })));
      await directory.ready;
    });
    expect(directory.services.length).toBe(40);
  });
});

describe("OperationDirectory.onServicesChange", () => {
  function listening() {
    stopClock();
    const opened = openDirectory();
    const told: string[] = [];
    opened.directory.onChange((changes) => told.push(`${changes.length} changes`));
    const stop = opened.directory.onServicesChange((services) =>
      told.push(services.map(({ name, operationIds }) => `${name}: ${operationIds}`).join("; ")),
    );
    return { ...opened, told: () => told.splice(0), stop };
  }

  it("Discovery: tells once of each service that came, changed or left, after its operations", () => {
    const { found, gone, told } = listening();
    found(service("t", notice("a.y"), notice("a.x")));
    expect(told()).toEqual(["2 changes", "service t: a.x,a.y"]);
    found(service("s", notice("a.x")));
    expect(told()).toEqual(["service s: a.x; service t: a.x,a.y"]);
    found(service("s", notice("a.x")));
    expect(told()).toEqual([]);
    found({ ...service("s", notice("a.x")), name: "new" });
    expect(told()).toEqual(["new: a.x; service t: a.x,a.y"]);
    found({ ...service("s", notice("a.x", { version: "2.0.0" })), name: "new" });
    expect(told()).toEqual(["1 changes", "new: a.x; service t: a.x,a.y"]);
    gone("t");
    expect(told()).toEqual(["1 changes", "new: a.x"]);
    gone("t");
    gone("s");
    expect(told()).toEqual(["1 changes", ""]);
  });

  it("Discovery: tells of services without operations, and of those read bit by bit", async () => {
    const { found, told, directory } = listening();
    found(service("s"));
    expect(told()).toEqual(["service s: "]);
    found(large("t", 60));
    expect(told()).toEqual([]);
    await directory.ready;
    expect(told()).toEqual(["60 changes", expect.stringContaining("service t: t.n0,t.n1,t.n10")]);
  });

  it("Discovery: gives a list that stays what it was, and stops telling one that left", () => {
    const { found, told, stop, directory } = listening();
    found(service("s"));
    const before = directory.services;
    expect(directory.services).toBe(before);
    stop();
    found(service("r"));
    expect(told()).toEqual(["service s: "]);
    expect([before.length, directory.services.map(({ serviceId }) => serviceId)]).toEqual([1, ["r", "s"]]);
  });
});
