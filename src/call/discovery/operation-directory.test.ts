import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { query } from "../../../test/make-operation.ts";
import type { RegistryChange } from "../../core/registry/executor.ts";
import type { Bus, ServiceWatcher } from "../bus.ts";
import type { CallLimits } from "../call-limits.ts";
import { createMemoryBus } from "../memory-bus.ts";
import { compareVersions } from "./compare-versions.ts";
import { OperationDirectory } from "./operation-directory.ts";
import type { OperationNotice, ServiceNotice } from "./service-notice.ts";
import { LISTED_PROBLEMS } from "./service-offers.ts";
import { toOperationNotice } from "./to-operation-notice.ts";

const notice = (id: string, extra: Partial<OperationNotice> = {}): OperationNotice => ({
  ...toOperationNotice(query(id, () => 1)),
  ...extra,
});

const service = (serviceId: string, ...operations: readonly OperationNotice[]): ServiceNotice => ({
  serviceId,
  name: `service ${serviceId}`,
  // As if it had come over a wire: no object is shared.
  operations: JSON.parse(JSON.stringify(operations)),
});

interface Setting {
  readonly limits?: Partial<CallLimits>;
  readonly namespaces?: readonly string[];
}

/** A directory on a bus that a test speaks for. */
function open(setting: Setting = {}) {
  const told: string[][] = [];
  const vetted: string[] = [];
  let watcher: ServiceWatcher | undefined;
  const bus: Pick<Bus, "watch"> = {
    watch: (given) => {
      watcher = given;
      return { ready: Promise.resolve(), stop: () => {} };
    },
  };
  const directory = new OperationDirectory(bus, {
    ...setting,
    handlerFor: ({ namespace, name }) => {
      vetted.push(`${namespace}.${name}`);
      return () => 1;
    },
  });
  directory.onChange((changes) => told.push(changes.map(inWords)));
  return {
    directory,
    vetted,
    /** What listeners heard since it was last asked. */
    heard: () => told.splice(0),
    found: (given: unknown) => watcher?.found(given as ServiceNotice),
    gone: (serviceId: unknown) => watcher?.gone(serviceId as string),
    ids: () => directory.operations.map(({ id }) => id),
  };
}

const inWords = ({ type, operation }: RegistryChange) => `${type} ${operation.id} ${operation.version}`;

describe("OperationDirectory", () => {
  it("Discovery: knows what there was before it came, and what came after", async () => {
    const bus = createMemoryBus();
    await bus.announce(service("one", notice("b.x"), notice("a.x")));
    const directory = new OperationDirectory(bus, { handlerFor: () => () => 1 });
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
    const { found, gone, heard } = open();
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

  it("Discovery: takes ten replicas for one operation, vetted once, there until the last has left", () => {
    const { found, gone, heard, directory, vetted } = open();
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
    const { found, heard, directory } = open();
    const { namespace, name, ...rest } = notice("a.x", { inputSchema: { type: "object", title: "t" } });
    found(service("s1", { namespace, name, ...rest }));
    found(service("s2", { ...rest, inputSchema: { title: "t", type: "object" }, name, namespace }));
    expect([directory.conflicts, heard().length]).toEqual([[], 1]);
  });

  it("Discovery: takes the highest version, then the smallest service id, and reports who differs", () => {
    const { found, gone, heard, directory } = open();
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
    const { found, heard, directory } = open();
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
        const { found, gone, directory, heard } = open();
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
      { numRuns: 300 },
    );
  });

  it("Discovery: does not let one bad operation hide the others", () => {
    const { found, gone, ids, directory } = open();
    const bad = notice("a.bad", { inputSchema: { type: "nonsense" } });
    found(service("s", notice("a.x"), bad, null as never, notice("a.y"), notice("a.x", { title: "again" })));
    expect(ids()).toEqual(["a.x", "a.y"]);
    expect(directory.unusable).toEqual([
      { serviceId: "s", id: "a.bad", reason: expect.stringContaining("its inputSchema is refused") },
      { serviceId: "s", reason: "An operation must be an object." },
      { serviceId: "s", id: "a.x", reason: "The service offers this id twice; the first counts." },
    ]);
    expect(directory.get("a.x")?.title).toBeUndefined();
    gone("s");
    expect(directory.unusable).toEqual([]);
  });

  it("Discovery: vets a bad operation once for all who offer it", () => {
    const { found, vetted, directory } = open();
    const bad = notice("a.bad", { inputSchema: { type: "nonsense" } });
    for (const id of ["s1", "s2", "s3"]) found(service(id, bad));
    expect(vetted).toEqual(["a.bad"]);
    expect(directory.unusable.map(({ serviceId }) => serviceId)).toEqual(["s1", "s2", "s3"]);
  });

  it("Discovery: counts the problems of a service that has too many to list", () => {
    const { found, directory } = open();
    found({ serviceId: "s", name: "s", operations: Array(LISTED_PROBLEMS).fill(1) });
    expect(directory.unusable.length).toBe(LISTED_PROBLEMS);
    found({ serviceId: "s", name: "s", operations: Array(LISTED_PROBLEMS + 2).fill(1) });
    expect(directory.unusable.length).toBe(LISTED_PROBLEMS + 1);
    expect(directory.unusable.at(-1)).toEqual({
      serviceId: "s",
      reason: "2 more of its offers are unusable.",
    });
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a text", "service"],
    ["no id", { name: "s", operations: [] }],
    ["an empty id", { serviceId: "", name: "s", operations: [] }],
    ["an id with a space", { serviceId: "a b", name: "s", operations: [] }],
    ["an id that is too long", { serviceId: "x".repeat(201), name: "s", operations: [] }],
    [
      "a getter that throws",
      Object.defineProperty({}, "serviceId", {
        get: () => {
          throw new Error("no");
        },
      }),
    ],
  ])("Discovery: survives a service that is %s", (_, given) => {
    const { found, gone, directory } = open();
    found(given);
    gone(given);
    expect(directory.services).toEqual([]);
    expect(directory.unusable).toEqual([{ serviceId: "", reason: expect.any(String) }]);
  });

  it("Discovery: takes an id and a name as long as allowed, and no longer", () => {
    const { found, directory } = open();
    found({ serviceId: "x".repeat(200), name: "n".repeat(200), operations: [notice("a.x")] });
    expect(directory.unusable).toEqual([]);
    found({ serviceId: "y", name: "n".repeat(201), operations: [notice("a.y")] });
    expect(directory.unusable).toEqual([
      { serviceId: "y", reason: expect.stringContaining("Its name must be") },
    ]);
    expect(directory.services.map(({ operationIds }) => operationIds)).toEqual([["a.x"], []]);
  });

  it("Discovery: lets go of what a service offered before it sent nonsense", () => {
    const { found, heard, directory } = open();
    found(service("s", notice("a.x")));
    found({ serviceId: "s", name: "s", operations: "all" });
    expect(heard().flat()).toEqual(["added a.x 1.0.0", "removed a.x 1.0.0"]);
    expect(directory.unusable).toEqual([{ serviceId: "s", reason: "Its operations must be a list." }]);
  });

  it("Discovery: holds as many services as allowed, and lists one over as ignored", () => {
    const { found, gone, ids, directory } = open({ limits: { services: 2 } });
    for (const id of ["s1", "s2", "s3"]) found(service(id, notice(`a.${id}`)));
    expect(ids()).toEqual(["a.s1", "a.s2"]);
    const reason = "There are 2 services already; it is ignored.";
    expect(directory.unusable).toEqual([{ serviceId: "s3", reason }]);
    found(service("s1", notice("a.new")));
    expect(ids()).toEqual(["a.new", "a.s2"]);
    gone("s2");
    found(service("s3", notice("a.s3")));
    expect([ids(), directory.unusable]).toEqual([["a.new", "a.s3"], []]);
  });

  it("Discovery: lists at most a thousand services that were not let in", () => {
    const { found, directory } = open({ limits: { services: 1 } });
    for (let i = 0; i <= 1_001; i++) found(service(`s${i}`));
    expect(directory.unusable.length).toBe(1_000);
  });

  it("Discovery: looks at as many operations of a service as allowed, and not at one more", () => {
    const { found, ids, directory } = open({ limits: { operations: 2 } });
    found(service("s", notice("a.x"), notice("a.y")));
    expect(directory.unusable).toEqual([]);
    found(service("s", notice("a.x"), notice("a.y"), notice("a.z")));
    expect(ids()).toEqual(["a.x", "a.y"]);
    const reason = "It offers more than 2 operations; the rest is ignored.";
    expect(directory.unusable).toEqual([{ serviceId: "s", reason }]);
  });

  it("Discovery: holds as many different operations as allowed, and still lets them change", () => {
    const { found, gone, ids, directory } = open({ limits: { operations: 2 } });
    found(service("s1", notice("a.x"), notice("a.y")));
    found(service("s2", notice("a.x"), notice("a.z")));
    expect(ids()).toEqual(["a.x", "a.y"]);
    const reason = "There are 2 different operations already; it is ignored.";
    expect(directory.unusable).toEqual([{ serviceId: "s2", id: "a.z", reason }]);
    found(service("s1", notice("a.x"), notice("a.y", { version: "2.0.0" })));
    expect(directory.get("a.y")?.version).toBe("2.0.0");
    gone("s1");
    found(service("s2", notice("a.x"), notice("a.z")));
    expect([ids(), directory.unusable]).toEqual([["a.x", "a.z"], []]);
  });

  it("Discovery: counts what a service takes up again like anything else", () => {
    const { found, ids, directory } = open({ limits: { operations: 3 } });
    found(service("s1", notice("a.x"), notice("a.y")));
    found(service("s2", notice("a.z")));
    found(service("s1", notice("a.v"), notice("a.w"), notice("a.x")));
    expect(ids()).toEqual(["a.v", "a.w", "a.z"]);
    expect(directory.unusable).toMatchObject([{ serviceId: "s1", id: "a.x" }]);
  });

  it("Discovery: looks only for the namespaces it is asked for", () => {
    const { found, ids, directory, vetted } = open({ namespaces: ["a"] });
    found(service("s", notice("a.x"), notice("b.x"), notice("b.bad", { version: "?" })));
    expect([ids(), directory.unusable, vetted]).toEqual([["a.x"], [], ["a.x"]]);
  });

  it("Discovery: remembers what was ever offered, and does not pretend to where it could not see it all", () => {
    const { found, gone, directory } = open({ limits: { operations: 2 } });
    found(service("s", notice("a.x")));
    gone("s");
    expect([directory.mayHaveOffered("a.x"), directory.mayHaveOffered("a.y")]).toEqual([true, false]);
    found(service("s", notice("a.z")));
    expect(directory.mayHaveOffered("a.y")).toBe(false);
    found(service("s", notice("a.w")));
    expect(directory.mayHaveOffered("a.y")).toBe(true);
    const crowded = open({ limits: { operations: 1 } });
    crowded.found(service("s", notice("a.x"), notice("a.y")));
    expect(crowded.directory.mayHaveOffered("a.y")).toBe(true);
    const full = open({ limits: { services: 1 } });
    full.found(service("s1"));
    expect(full.directory.mayHaveOffered("a.y")).toBe(false);
    full.found(service("s2", notice("a.y")));
    expect(full.directory.mayHaveOffered("a.y")).toBe(true);
  });

  it("Discovery: goes on when a listener throws, and stops telling one that left", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const { found, directory, heard } = open();
    const stop = directory.onChange(() => {
      throw new Error("listener");
    });
    directory.onChange(() => heard().length);
    found(service("s", notice("a.x")));
    expect(warn).toHaveBeenCalledTimes(1);
    stop();
    found(service("s", notice("a.y")));
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
    expect(directory.operations.map(({ id }) => id)).toEqual(["a.y"]);
  });

  it("Discovery: gives the same list until something changes, and touches only what did", () => {
    const { found, directory, vetted } = open();
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
