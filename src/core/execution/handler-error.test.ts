import { Type } from "typebox";
import { describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import { CallError } from "../errors/errors.ts";
import type { OperationSpec } from "../operation/operation-types.ts";
import { OperationRegistry } from "../registry/registry.ts";

const declared = [
  {
    code: "OUT_OF_STOCK",
    description: "There is none left.",
    schema: Type.Object({ left: Type.Integer() }),
    httpStatus: 410,
  },
  { code: "NOT_FOUND", httpStatus: 422 },
];

async function failWith(thrown: unknown, errors: OperationSpec["errors"] = declared, onWarning = vi.fn()) {
  const operation = query(
    "shop.buy",
    () => {
      throw thrown;
    },
    { errors },
  );
  const error = await rejection(new OperationRegistry([operation], { onWarning }).execute(operation));
  return { error: error as CallError, onWarning };
}

describe("errors a handler throws", () => {
  it("RE-10 keeps code, message and details of a declared error and gives it its status", async () => {
    const thrown = new CallError("OUT_OF_STOCK", "None left.", { details: { left: 0 }, retryable: true });
    const { error, onWarning } = await failWith(thrown);
    expect(error.toJSON()).toEqual({
      code: "OUT_OF_STOCK",
      message: "None left.",
      retryable: true,
      correctable: thrown.correctable,
      details: { left: 0 },
    });
    expect(error.httpStatus).toBe(410);
    expect(error.cause).toBe(thrown);
    expect(onWarning).not.toHaveBeenCalled();
  });

  it("RE-10 passes a declared error on as it is where nothing needs to change", async () => {
    const thrown = new CallError("OUT_OF_STOCK", "None left.", { details: { left: 0 }, httpStatus: 410 });
    expect((await failWith(thrown)).error).toBe(thrown);
    const plain = new CallError("SOLD");
    expect((await failWith(plain, [{ code: "SOLD" }])).error).toBe(plain);
  });

  it.each([400, 599])("RE-10 takes the status %i", async (httpStatus) => {
    const { error } = await failWith(new CallError("SOLD"), [{ code: "SOLD", httpStatus }]);
    expect(error.httpStatus).toBe(httpStatus);
  });

  it("RE-10 takes declarations as a record by code too", async () => {
    const thrown = new CallError("OUT_OF_STOCK", "None left.");
    const { error } = await failWith(thrown, { OUT_OF_STOCK: { httpStatus: 409 } });
    expect(error).toMatchObject({ code: "OUT_OF_STOCK", httpStatus: 409 });
  });

  it("RE-10 warns when details miss their schema, and keeps them", async () => {
    const { error, onWarning } = await failWith(
      new CallError("OUT_OF_STOCK", "x", { details: { left: "none" } }),
    );
    expect(error.details).toEqual({ left: "none" });
    expect(onWarning).toHaveBeenCalledWith({
      type: "error-details-invalid",
      message: expect.stringContaining('"OUT_OF_STOCK"'),
      operationId: "shop.buy",
      issues: [expect.objectContaining({ pointer: "/left" })],
    });
  });

  it("RE-10 keeps a code of the table, and gives a declared one its own status", async () => {
    const conflict = new CallError("CONFLICT", "Twice.");
    expect((await failWith(conflict)).error).toBe(conflict);
    expect((await failWith(new CallError("NOT_FOUND"))).error).toMatchObject({
      code: "NOT_FOUND",
      httpStatus: 422,
    });
  });

  it("RE-10 keeps a code nobody declared in the cause", async () => {
    const thrown = new CallError("INTERNAL_SECRET", "internal text", { details: { host: "db-7" } });
    const { error } = await failWith(thrown);
    expect(error.toJSON()).toMatchObject({
      code: "EXECUTION_ERROR",
      message: "The operation failed unexpectedly.",
    });
    expect(error.details).toBeUndefined();
    expect(error.cause).toBe(thrown);
  });

  it("RE-10 lets no foreign error pass for a declared one", async () => {
    const foreign = Object.assign(new Error("foreign text"), { code: "OUT_OF_STOCK" });
    const { error } = await failWith(foreign);
    expect(error.code).toBe("EXECUTION_ERROR");
    expect(error.message).not.toContain("foreign");
    expect(
      (await failWith(new Error("x"), [{ code: "EXECUTION_ERROR", httpStatus: 599 }])).error.httpStatus,
    ).toBe(500);
  });

  it("RE-10 keeps the declared errors of a nested call from leaking through an operation that does not declare them", async () => {
    const inner = query(
      "a.inner",
      () => {
        throw new CallError("INNER_ONLY", "inner text");
      },
      { errors: [{ code: "INNER_ONLY" }] },
    );
    const outer = query("a.outer", (_, { execute }) => execute(inner));
    const registry = new OperationRegistry([inner, outer]);
    expect(await rejection(registry.execute(inner))).toMatchObject({ code: "INNER_ONLY" });
    expect(await rejection(registry.execute(outer))).toMatchObject({
      code: "EXECUTION_ERROR",
      cause: { code: "INNER_ONLY" },
    });
  });

  it.each([
    [[{ code: "" }], "errors must be declared under codes"],
    [[{ code: "NO SPACES" }], "errors must be declared under codes"],
    [[{}], "errors must be declared under codes"],
    [{ "9": {} }, "errors must be declared under codes"],
    [[{ code: "A", httpStatus: 200 }], "errors must be given an httpStatus between 400 and 599"],
    [[{ code: "A", httpStatus: 600 }], "errors must be given an httpStatus between 400 and 599"],
    [[{ code: "A", httpStatus: 404.5 }], "errors must be given an httpStatus between 400 and 599"],
    [[{ code: "A", httpStatus: "404" }], "errors must be given an httpStatus between 400 and 599"],
    [[{ code: "A", schema: { type: "nonsense" } }], "its errors.A.schema is refused."],
  ])("RE-10 refuses the declaration %j when it is registered", (errors, message) => {
    const operation = query("shop.buy", () => 1, { errors: errors as never });
    expect(() => new OperationRegistry([operation])).toThrow(`Operation "shop.buy": ${message}`);
  });
});
