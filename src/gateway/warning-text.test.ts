import { expect, it } from "vitest";
import { query } from "../../test/make-operation.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { writeWarning } from "./gateway.ts";

it("RE-30 a warning about output names the operation and the first field that is wrong", async () => {
  const lines: string[] = [];
  const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
  const odd = query("desk.odd", () => ({ n: "seven" }) as never, { outputSchema });
  const registry = new OperationRegistry([odd], {
    onWarning: (warning) => lines.push(writeWarning(warning)),
  });
  await registry.execute("desk.odd");
  expect(lines).toEqual([expect.stringMatching(/desk\.odd.*: n must be .*number.*; it is .*\.$/)]);
  expect(writeWarning({ type: "listener-failed", message: "A listener threw." })).toBe("A listener threw.");
});
