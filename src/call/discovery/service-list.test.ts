import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServiceList } from "./service-directory.ts";

describe("ServiceList", () => {
  it("Discovery: is what was put and not deleted, sorted by id, whatever the order", () => {
    const step = fc.tuple(fc.constantFrom("a", "B", "c", "c-1", "_", "9"), fc.option(fc.string()));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const list = new ServiceList();
        const model = new Map<string, string>();
        for (const [serviceId, name] of steps) {
          const before = list.all;
          const copy = [...before];
          if (name === null) list.delete(serviceId);
          else list.put(serviceId, name, ["y", "x"]);
          if (name === null) model.delete(serviceId);
          else model.set(serviceId, name);
          expect(before).toEqual(copy);
        }
        const expected = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
        expect(list.all).toEqual(
          expected.map(([serviceId, name]) => ({ serviceId, name, operationIds: ["x", "y"] })),
        );
      }),
    );
  });

  it("Discovery: gives out nothing that can be changed", () => {
    const list = new ServiceList();
    list.put("s", "name", ["x"]);
    const [service] = list.all;
    expect([list.all, service, service?.operationIds].map((value) => Object.isFrozen(value))).toEqual([
      true,
      true,
      true,
    ]);
  });
});
