import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { notice, openDirectory, service } from "../../../test/open-directory.ts";
import { runs } from "../../../test/runs.ts";
import { stopClock } from "../../../test/stop-clock.ts";
import { compareVersions } from "./offer-table.ts";

// What is small is read at once, but only for so many milliseconds.
beforeEach(stopClock);

describe("OperationDirectory, where services offer the same", () => {
  it("Discovery: takes ten replicas for one operation, vetted once, there until the last has left", () => {
    const { found, gone, heard, directory, vetted } = openDirectory();
    const ids = Array.from({ length: 10 }, (_, i) => `replica${i}`);
    for (const id of ids) found(service(id, notice("a.x", { tags: ["t"] })));
    expect(heard()).toEqual([["added a.x 1.0.0"]]);
    expect([directory.operations.length, directory.services.length, directory.conflicts]).toEqual([
      1,
      10,
      [],
    ]);
    const [operation] = directory.operations;
    for (const id of ids.slice(0, 9)) gone(id);
    expect(directory.operations[0]).toBe(operation);
    expect(heard()).toEqual([]);
    expect(vetted).toEqual(["a.x"]);
    gone("replica9");
    expect(heard()).toEqual([["removed a.x 1.0.0"]]);
  });

  it("Discovery: does not care in what order fields come", () => {
    const { found, heard, directory } = openDirectory();
    const { namespace, name, ...rest } = notice("a.x", { inputSchema: { type: "object", title: "t" } });
    found(service("s1", { namespace, name, ...rest }));
    found(service("s2", { ...rest, inputSchema: { title: "t", type: "object" }, name, namespace }));
    expect([directory.conflicts, heard().length]).toEqual([[], 1]);
  });

  it("Discovery: takes the highest version, then the smallest service id, and reports who differs", () => {
    const { found, gone, heard, directory } = openDirectory();
    found(service("m", notice("a.x", { version: "1.9.0" })));
    found(service("z", notice("a.x", { version: "1.10.0", title: "z" })));
    found(service("k", notice("a.x", { version: "1.10.0", title: "k" })));
    found(service("a", notice("a.x", { version: "1.10.0-rc.1" })));
    expect(heard().flat()).toEqual(["added a.x 1.9.0", "replaced a.x 1.10.0", "replaced a.x 1.10.0"]);
    expect(directory.get("a.x")?.title).toBe("k");
    expect(directory.conflicts).toEqual([
      {
        operationId: "a.x",
        chosen: { serviceId: "k", version: "1.10.0" },
        others: [
          { serviceId: "a", version: "1.10.0-rc.1" },
          { serviceId: "m", version: "1.9.0" },
          { serviceId: "z", version: "1.10.0" },
        ],
      },
    ]);
    gone("k");
    expect([directory.get("a.x")?.title, heard()]).toEqual(["z", [["replaced a.x 1.10.0"]]]);
    gone("m");
    expect(heard()).toEqual([]);
    gone("z");
    expect([directory.conflicts, heard()]).toEqual([[], [["replaced a.x 1.10.0-rc.1"]]]);
  });

  it("Discovery: follows the service that counts when it goes back to an older version", () => {
    const { found, heard, directory } = openDirectory();
    found(service("a", notice("a.x", { version: "3.0.0" })));
    found(service("b", notice("a.x", { version: "2.0.0" })));
    found(service("a", notice("a.x", { version: "1.0.0" })));
    expect(directory.get("a.x")?.version).toBe("2.0.0");
    expect(heard().flat()).toEqual(["added a.x 3.0.0", "replaced a.x 2.0.0"]);
  });

  it("Discovery: comes to the same whatever order services come, change and leave in", () => {
    const ids = ["s1", "s2", "s3", "s4"];
    const step = fc.record({
      serviceId: fc.constantFrom(...ids),
      offers: fc.option(
        fc.uniqueArray(
          fc.tuple(fc.constantFrom("a.x", "a.y", "b.z"), fc.constantFrom("1.0.0", "2.0.0", "2.0.0-a")),
          { selector: ([id]) => id },
        ),
      ),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { found, gone, directory, heard } = openDirectory();
        const model = new Map<string, readonly (readonly [string, string])[]>();
        for (const { serviceId, offers } of steps) {
          if (offers === null) gone(serviceId);
          else found(service(serviceId, ...offers.map(([id, version]) => notice(id, { version }))));
          if (offers === null) model.delete(serviceId);
          else model.set(serviceId, offers);
        }
        const versions = new Map<string, string>();
        for (const [id, version] of [...model.values()].flat()) {
          const known = versions.get(id);
          if (known === undefined || compareVersions(version, known) > 0) versions.set(id, version);
        }
        const expected = [...versions].sort(([a], [b]) => (a < b ? -1 : 1));
        expect(directory.operations.map(({ id, version }) => [id, version])).toEqual(expected);
        expect(replay(heard())).toEqual(new Map(expected));
        expect(directory.services.map(({ serviceId }) => serviceId)).toEqual([...model.keys()].sort());
      }),
      runs(300),
    );
  });
});

function replay(batches: readonly (readonly string[])[]): Map<string, string> {
  const state = new Map<string, string>();
  for (const change of batches.flat()) {
    const [type = "", id = "", version = ""] = change.split(" ");
    expect([change, state.has(id)]).toEqual([change, type !== "added"]);
    if (type === "removed") state.delete(id);
    else state.set(id, version);
  }
  return new Map([...state].sort(([a], [b]) => (a < b ? -1 : 1)));
}
