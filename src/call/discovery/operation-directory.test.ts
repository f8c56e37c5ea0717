import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { notice, openDirectory, service } from "../../../test/open-directory.ts";
import { stopClock } from "../../../test/stop-clock.ts";
import { createMemoryBus } from "../memory-bus.ts";
import { ServiceDirectory } from "./service-directory.ts";

// What is small is read at once, but only for so many milliseconds.
beforeEach(stopClock);

describe("OperationDirectory", () => {
  it("Discovery: knows what there was before it came, and what came after", async () => {
    const bus = createMemoryBus();
    await bus.announce(service("one", notice("b.x"), notice("a.x")));
    const directory = new ServiceDirectory(bus, { handlerFor: () => () => 1 });
    expect(directory.isReady).toBe(false);
    await directory.ready;
    expect(directory.isReady).toBe(true);
    expect(directory.operations.map(({ id }) => id)).toEqual(["a.x", "b.x"]);
    const two = await bus.announce(service("two", notice("c.x")));
    expect(directory.services).toEqual([
      { serviceId: "one", name: "service one", operationIds: ["a.x", "b.x"] },
      { serviceId: "two", name: "service two", operationIds: ["c.x"] },
    ]);
    await two.withdraw();
    expect(directory.services.map(({ serviceId }) => serviceId)).toEqual(["one"]);
    directory.stop();
    await bus.announce(service("three", notice("d.x")));
    expect(directory.operations.map(({ id }) => id)).toEqual(["a.x", "b.x"]);
  });

  it("Discovery: tells the changes of one notice together, and nothing when nothing changed", () => {
    const { found, gone, heard } = openDirectory();
    found(service("s", notice("a.x"), notice("a.y")));
    expect(heard()).toEqual([["added a.x 1.0.0", "added a.y 1.0.0"]]);
    found(service("s", notice("a.x"), notice("a.y")));
    expect(heard()).toEqual([]);
    found(service("s", notice("a.y", { version: "1.1.0" }), notice("a.z")));
    expect(heard()).toEqual([["removed a.x 1.0.0", "replaced a.y 1.1.0", "added a.z 1.0.0"]]);
    gone("s");
    expect(heard()).toEqual([["removed a.y 1.1.0", "removed a.z 1.0.0"]]);
    gone("s");
    expect(heard()).toEqual([]);
  });

  it("Discovery: looks only for the namespaces it is asked for", () => {
    const { found, ids, directory, vetted } = openDirectory({ namespaces: ["a"] });
    found(service("s", notice("a.x"), notice("b.x"), notice("b.bad", { version: "?" })));
    expect([ids(), directory.unusable, vetted]).toEqual([["a.x"], [], ["a.x"]]);
  });

  it("Discovery: goes on when a listener throws, and stops telling one that left", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const { found, directory, heard } = openDirectory();
    const stop = directory.onChange(() => {
      throw new Error("listener");
    });
    directory.onChange(() => heard().length);
    found(service("s", notice("a.x")));
    expect(warn).toHaveBeenCalledTimes(1);
    stop();
    found(service("s", notice("a.y")));
    expect(warn).toHaveBeenCalledTimes(1);
    expect(directory.operations.map(({ id }) => id)).toEqual(["a.y"]);
  });

  it("Discovery: gives the same list until something changes, and touches only what did", () => {
    const { found, directory, vetted } = openDirectory();
    found(service("s1", notice("a.x"), notice("a.y")));
    const before = directory.operations;
    expect(directory.operations).toBe(before);
    found(service("s0", notice("a.x")));
    expect(directory.operations).toBe(before);
    found(service("s1", notice("a.x"), notice("a.y", { title: "new" })));
    expect(directory.operations[0]).toBe(before[0]);
    expect(directory.operations[1]).not.toBe(before[1]);
    expect(vetted).toEqual(["a.x", "a.y", "a.y"]);
  });
});
