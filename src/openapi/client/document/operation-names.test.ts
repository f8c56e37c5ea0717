import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/runs.ts";
import { nameOperations, type OperationSign } from "./index-operations.ts";

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$/;
const sign = (method: string, path: string, namedId?: string): OperationSign => ({
  method,
  path,
  namedId,
});
const nameOf = (...args: Parameters<typeof sign>) => nameOperations([sign(...args)])[0];

const letters = fc.constantFrom(
  "a",
  "A",
  "b",
  "id",
  "{id}",
  "{Id}",
  "by-id",
  "-",
  ".",
  "~",
  "é",
  "x y",
  "__proto__",
);
const path = fc.array(letters, { maxLength: 4 }).map((parts) => `/${parts.join("/")}`);
const id = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.constantFrom("get/a", "get/", "get/by-id", "a b", "a_b", "a-b", "a/b", "__proto__", "x".repeat(300)),
  path.map((text) => nameOf("GET", text) as string),
  fc.string({ minLength: 1 }).map((text) => nameOf("GET", "/", text) as string),
);
const method = fc.constantFrom("GET", "POST", "QUERY", "COPY", "copy");
const operations = fc.uniqueArray(fc.record({ method, path, namedId: fc.option(id, { nil: undefined }) }), {
  selector: (one) => `${one.method} ${one.path}`,
  maxLength: 20,
});

describe("names of operations", () => {
  it("RE-25 keeps an operationId that is a name, and says method and path where there is none", () => {
    expect(nameOf("GET", "/x", "repos/list-for_org.v2")).toBe("repos/list-for_org.v2");
    expect(nameOf("GET", "/pets/{id}/toys")).toBe("get/pets/by-id/toys");
    expect(nameOf("GET", "/")).toBe("get/");
    expect(nameOf("GET", "/pets", "get/pets")).toBe("get/pets");
  });

  it("RE-25 makes a readable name out of what is none", () => {
    expect(nameOf("GET", "/x", "List all pets!")).toMatch(/^List_all_pets_-x[0-9a-f]{10}$/);
    expect(nameOf("GET", "/a/{x}.{y}")).toMatch(/^get\/a\/x\.y-x[0-9a-f]{10}$/);
    expect(nameOf("GET", "/x", "é")).toMatch(NAME);
  });

  it("RE-25 names both operations after their places too where an operationId is given twice", () => {
    const [first, second, other] = nameOperations([
      sign("GET", "/a", "x"),
      sign("GET", "/b", "x"),
      sign("GET", "/c", "y"),
    ]);
    expect(first).toMatch(/^x-x[0-9a-f]{10}$/);
    expect(second).toMatch(/^x-x[0-9a-f]{10}$/);
    expect(first).not.toBe(second);
    expect(other).toBe("y");
  });

  it("RE-25 never gives two operations one name, and only gives names", () => {
    fc.assert(
      fc.property(operations, (signs) => {
        const names = nameOperations(signs);
        expect(new Set(names).size).toBe(signs.length);
        for (const name of names) expect(name).toMatch(NAME);
      }),
      runs(1_000),
    );
  });

  it("RE-25 never renames an operation because another one is there", () => {
    fc.assert(
      fc.property(operations, fc.nat(19), (signs, at) => {
        const one = signs[at % Math.max(1, signs.length)];
        const isShared =
          signs.filter(({ namedId }) => namedId !== undefined && namedId === one?.namedId).length > 1;
        if (one === undefined || isShared) return;
        expect(nameOperations(signs)[signs.indexOf(one)]).toBe(nameOperations([one])[0]);
      }),
      runs(1_000),
    );
  });
});
