import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { type ServedExecutor, ToolTable } from "./tool-table.ts";

const ADMIN = { subject: "root", scopes: ["admin"] };
const hidden = { access: { scopes: { allOf: ["admin"] } } } as const;

/** An executor that shows no more than what each caller may see. */
function discreet(operations: readonly AnyOperation[]): ServedExecutor {
  const registry = new OperationRegistry(operations);
  return {
    execute: registry.execute.bind(registry),
    subscribe: registry.subscribe.bind(registry),
    list: registry.list.bind(registry),
    get: registry.get.bind(registry),
    onChange: registry.onChange.bind(registry),
  } as ServedExecutor;
}

describe("ToolTable", () => {
  it("Mcp: gives an operation that only some may see no name that another has", () => {
    const [open, secret] = [query("x.a_b", () => 1), query("a.b", () => 2, hidden)];
    const table = new ToolTable(discreet([open, secret]), { prefix: false });
    expect(table.nameOf(open)).toBe("a_b");
    expect(table.nameOf(secret)).toMatch(/^a_b__[a-z2-7]{13}$/);
    expect(table.find("a_b", ADMIN)?.id).toBe("x.a_b");
    expect(table.find(table.nameOf(secret), ADMIN)?.id).toBe("a.b");
    expect(table.find(table.nameOf(secret), undefined)).toBeUndefined();
  });

  it("Mcp: finds every operation by its name, whoever may see which", () => {
    const name = fc.stringMatching(/^[ab](_[ab]){0,2}$/);
    const id = fc.tuple(fc.constantFrom("a", "b", "a_b"), name).map((parts) => parts.join("."));
    const entry = fc.record({ id, open: fc.boolean() });
    const entries = fc.uniqueArray(entry, { selector: ({ id }) => id, maxLength: 12 });
    const naming = fc.record({ prefix: fc.boolean(), dots: fc.boolean() });
    fc.assert(
      fc.property(entries, naming, (list, names) => {
        const operations = list.map(({ id, open }) => query(id, () => 1, open ? {} : hidden));
        const table = new ToolTable(discreet(operations), names);
        const named = new Set(operations.map((operation) => table.nameOf(operation)));
        expect(named.size).toBe(operations.length);
        for (const operation of operations) {
          expect(table.find(table.nameOf(operation), ADMIN)?.id).toBe(operation.id);
        }
      }),
    );
  });
});
