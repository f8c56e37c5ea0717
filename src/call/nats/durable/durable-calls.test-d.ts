import { Type } from "typebox";
import { describe, expectTypeOf, it } from "vitest";
import { defineOperation } from "../../../core/operation/operation.ts";
import type { DurableCalls, SubmittedCall } from "./durable-calls.ts";

const double = defineOperation({
  namespace: "math",
  name: "double",
  version: "1.0.0",
  type: "mutation",
  description: "Doubles a number.",
  durable: true,
  inputSchema: Type.Object({ n: Type.Number() }),
  handler: ({ n }) => n * 2,
});

describe("DurableCalls.submit, by type", () => {
  it("Durable: an operation brings the type of its input, an id takes any", () => {
    const calls = {} as DurableCalls;
    const typed = () => calls.submit(double, { n: 1 }, { idempotencyKey: "k" });
    const named = () => calls.submit("math.double", { anything: true });
    expectTypeOf(typed).returns.resolves.toEqualTypeOf<SubmittedCall>();
    expectTypeOf(named).returns.resolves.toEqualTypeOf<SubmittedCall>();
    // @ts-expect-error the input is not what the operation takes
    () => calls.submit(double, { n: "1" });
    // @ts-expect-error the operation has an input
    () => calls.submit(double);
    // @ts-expect-error there is no such option
    () => calls.submit(double, { n: 1 }, { idempotency: "k" });
  });
});
