import { describe, expect, it } from "vitest";
import { query, stream } from "../../../test/make-operation.ts";
import { type AnyOperation, defineOperation, type OperationAnnotations, Type } from "../../index.ts";
import { checkApprove, type InputRule, needsApproval, RULE_LIMITS } from "./approve-policy.ts";

function mutation(annotations?: OperationAnnotations, inputSchema: object = {}): AnyOperation {
  return defineOperation({
    namespace: "bank",
    name: "pay",
    inputSchema: inputSchema as never,
    ...(annotations && { annotations }),
    handler: () => 1,
  });
}

describe("which calls wait for approval", () => {
  it.each<readonly [string, AnyOperation, boolean]>([
    ["an operation that says that it destroys", mutation({ destructive: true }), true],
    ["a query that says so", query("bank.read", () => 1, { annotations: { destructive: true } }), true],
    ["one that changes something and says nothing", mutation(), true],
    ["one that says that it destroys nothing", mutation({ destructive: false }), false],
    ["one that only reads", mutation({ readOnly: true }), false],
    ["a query", query("bank.read", () => 1), false],
    ["a stream", stream("bank.watch", async function* () {}), false],
  ])("destructive ones: %s", (_, operation, waits) => {
    expect(needsApproval({ calls: "destructive" }, operation, {})).toBe(waits);
    expect(needsApproval({ calls: "none", rules: [{}] }, operation, {})).toBe(false);
    expect(needsApproval({}, operation, {})).toBe(true);
  });

  it.each<readonly [string, InputRule, unknown, boolean]>([
    ["above the bound", { pointer: "/amount", above: 100 }, { amount: 100.01 }, true],
    ["at the bound", { pointer: "/amount", above: 100 }, { amount: 100 }, false],
    ["at least the bound", { pointer: "/amount", atLeast: 100 }, { amount: 100 }, true],
    ["below the bound", { pointer: "/amount", below: 0 }, { amount: -1 }, true],
    ["within a range", { pointer: "/amount", atLeast: 1, atMost: 5 }, { amount: 5 }, true],
    ["out of a range", { pointer: "/amount", atLeast: 1, atMost: 5 }, { amount: 6 }, false],
    [
      "a number in a text, which cannot be compared",
      { pointer: "/amount", above: 100 },
      { amount: "5" },
      true,
    ],
    ["nothing there", { pointer: "/amount", above: 100 }, {}, false],
    ["a member of a prototype", { pointer: "/toString", schema: {} }, {}, false],
    ["one of several", { pointer: "/to", in: ["eve", 5, null] }, { to: null }, true],
    ["none of several", { pointer: "/to", in: ["eve", 5, null] }, { to: "5" }, false],
    ["any item", { pointer: "/lines/*/cost", above: 10 }, { lines: [{ cost: 1 }, { cost: 11 }] }, true],
    ["no item", { pointer: "/lines/*/cost", above: 10 }, { lines: [{ cost: 1 }] }, false],
    ["a schema", { schema: { required: ["urgent"] } }, { urgent: false }, true],
    ["a schema that it misses", { schema: { required: ["urgent"] } }, {}, false],
    [
      "all members of a rule",
      { pointer: "/to", in: ["eve"], schema: { minLength: 4 } },
      { to: "eve" },
      false,
    ],
    ["the default that the operation declares", { pointer: "/force", in: [true] }, {}, true],
    ["a value in place of the default", { pointer: "/force", in: [true] }, { force: false }, false],
    [
      "too many to look at",
      { pointer: "/x/*", above: 1 },
      { x: Array(RULE_LIMITS.places + 1).fill(0) },
      true,
    ],
    [
      "as many as are looked at",
      { pointer: "/x/*", above: 1 },
      { x: Array(RULE_LIMITS.places).fill(0) },
      false,
    ],
  ])("by input: %s", (_, rule, input, waits) => {
    const operation = mutation({}, Type.Object({ force: Type.Optional(Type.Boolean({ default: true })) }));
    expect(needsApproval({ rules: [{ pointer: "/nowhere", in: [1] }, rule] }, operation, input)).toBe(waits);
  });

  it.each<readonly [string, object, RegExp]>([
    [
      "a pointer that is none",
      { rules: [{ pointer: "amount" }] },
      /rules\[0\]\.pointer must be a JSON pointer/,
    ],
    ["a bound that is no number", { rules: [{ above: "5" }] }, /rules\[0\]\.above must be a number/],
    [
      "a schema that cannot be used",
      { rules: [{ schema: { type: "nothing" } }] },
      /rules\[0\]\.schema cannot be used/,
    ],
    ["more rules than are read", { rules: Array(RULE_LIMITS.rules + 1).fill({}) }, /at most 100 rules/],
    ["a place that there is not", { by: ["telepathy"] }, /approve\.by must be a list of page/],
    ["nobody", { by: [] }, /approve\.by/],
    ["a time that is too long", { expiresMs: 1e12 }, /approve\.expiresMs/],
  ])("refuses %s", (_, policy, message) => {
    expect(() => checkApprove("approve", policy)).toThrow(message);
    expect(() => checkApprove("approve", { rules: Array(RULE_LIMITS.rules).fill({}) })).not.toThrow();
  });
});
