import { beforeEach, describe, expect, it, vi } from "vitest";
import { notice, openDirectory, service } from "../../../test/open-directory.ts";
import { stopClock } from "../../../test/stop-clock.ts";
import { LISTED_PROBLEMS } from "./service-offers.ts";

// What is small is read at once, but only for so many milliseconds.
beforeEach(stopClock);

describe("OperationDirectory, with what is wrong or too much", () => {
  it("Discovery: does not let one bad operation hide the others", () => {
    const { found, gone, ids, directory } = openDirectory();
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
    const { found, vetted, directory } = openDirectory();
    const bad = notice("a.bad", { inputSchema: { type: "nonsense" } });
    for (const id of ["s1", "s2", "s3"]) found(service(id, bad));
    expect(vetted).toEqual(["a.bad"]);
    expect(directory.unusable.map(({ serviceId }) => serviceId)).toEqual(["s1", "s2", "s3"]);
  });

  it("Discovery: counts the problems of a service that has too many to list", async () => {
    const { found, directory } = openDirectory();
    found({ serviceId: "s", name: "s", operations: Array(LISTED_PROBLEMS).fill(1) });
    await vi.waitFor(() => expect(directory.unusable.length).toBe(LISTED_PROBLEMS), 20_000);
    found({ serviceId: "s", name: "s", operations: Array(LISTED_PROBLEMS + 2).fill(1) });
    await vi.waitFor(() => expect(directory.unusable.length).toBe(LISTED_PROBLEMS + 1), 20_000);
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
    ["an id with two dots", { serviceId: "a.b.c", name: "s", operations: [] }],
    ["an id that is too long", { serviceId: "x".repeat(101), name: "s", operations: [] }],
    [
      "a getter that throws",
      Object.defineProperty({}, "serviceId", {
        get: () => {
          throw new Error("no");
        },
      }),
    ],
  ])("Discovery: survives a service that is %s", (_, given) => {
    const { found, gone, directory } = openDirectory();
    found(given);
    gone(given);
    expect(directory.services).toEqual([]);
    expect(directory.unusable).toEqual([{ serviceId: "", reason: expect.any(String) }]);
  });

  it("Discovery: takes an id and a name as long as allowed, and no longer", () => {
    const { found, directory } = openDirectory();
    found({ serviceId: "x".repeat(100), name: "n".repeat(200), operations: [notice("a.x")] });
    expect(directory.unusable).toEqual([]);
    found({ serviceId: "y", name: "n".repeat(201), operations: [notice("a.y")] });
    expect(directory.unusable).toEqual([
      { serviceId: "y", reason: expect.stringContaining("Its name must be") },
    ]);
    expect(directory.services.map(({ operationIds }) => operationIds)).toEqual([["a.x"], []]);
  });

  it("Discovery: lets go of what a service offered before it sent nonsense", () => {
    const { found, heard, directory } = openDirectory();
    found(service("s", notice("a.x")));
    found({ serviceId: "s", name: "s", operations: "all" });
    expect(heard().flat()).toEqual(["added a.x 1.0.0", "removed a.x 1.0.0"]);
    expect(directory.unusable).toEqual([{ serviceId: "s", reason: "Its operations must be a list." }]);
  });

  it("Discovery: holds as many services as allowed, and lists one over as ignored", () => {
    const { found, gone, ids, directory } = openDirectory({ limits: { services: 2 } });
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
    const { found, directory } = openDirectory({ limits: { services: 1 } });
    for (let i = 0; i <= 1_001; i++) found(service(`s${i}`));
    expect(directory.unusable.length).toBe(1_000);
  });

  it("Discovery: looks at as many operations of a service as allowed, and not at one more", () => {
    const { found, ids, directory } = openDirectory({ limits: { operations: 2 } });
    found(service("s", notice("a.x"), notice("a.y")));
    expect(directory.unusable).toEqual([]);
    found(service("s", notice("a.x"), notice("a.y"), notice("a.z")));
    expect(ids()).toEqual(["a.x", "a.y"]);
    const reason = "It offers more than 2 operations; the rest is ignored.";
    expect(directory.unusable).toEqual([{ serviceId: "s", reason }]);
  });

  it("Discovery: holds as many different operations as allowed, and still lets them change", () => {
    const { found, gone, ids, directory } = openDirectory({ limits: { operations: 2 } });
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
    const { found, ids, directory } = openDirectory({ limits: { operations: 3 } });
    found(service("s1", notice("a.x"), notice("a.y")));
    found(service("s2", notice("a.z")));
    found(service("s1", notice("a.v"), notice("a.w"), notice("a.x")));
    expect(ids()).toEqual(["a.v", "a.w", "a.z"]);
    expect(directory.unusable).toMatchObject([{ serviceId: "s1", id: "a.x" }]);
  });

  it("Discovery: remembers what was ever offered, and does not pretend to where it could not see it all", () => {
    const { found, gone, directory } = openDirectory({ limits: { operations: 2 } });
    found(service("s", notice("a.x")));
    gone("s");
    expect([directory.mayHaveOffered("a.x"), directory.mayHaveOffered("a.y")]).toEqual([true, false]);
    found(service("s", notice("a.z")));
    expect(directory.mayHaveOffered("a.y")).toBe(false);
    found(service("s", notice("a.w")));
    expect(directory.mayHaveOffered("a.y")).toBe(true);
    const crowded = openDirectory({ limits: { operations: 1 } });
    crowded.found(service("s", notice("a.x"), notice("a.y")));
    expect(crowded.directory.mayHaveOffered("a.y")).toBe(true);
    const full = openDirectory({ limits: { services: 1 } });
    full.found(service("s1"));
    expect(full.directory.mayHaveOffered("a.y")).toBe(false);
    full.found(service("s2", notice("a.y")));
    expect(full.directory.mayHaveOffered("a.y")).toBe(true);
  });
});
