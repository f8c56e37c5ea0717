import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { toWire } from "../wire/wire.ts";
import { ERROR_CODES, type ErrorCode } from "./error-codes.ts";
import { CallError, isCallError, toCallError, toProblem } from "./errors.ts";

const SECRET = "s3cr3t /home/someone/file.ts";

const throwing = (): never => {
  throw new Error(SECRET);
};

/** Another copy of the module, as when two versions of the package are installed. */
async function otherCopy(): Promise<typeof import("./errors.ts")> {
  vi.resetModules();
  return import("./errors.ts");
}

describe("CallError", () => {
  it.each(Object.keys(ERROR_CODES) as ErrorCode[])("X-5 takes what %s says from the table", (code) => {
    const error = new CallError(code);
    const { message, retryable, correctable, httpStatus } = ERROR_CODES[code];
    expect(error).toMatchObject({ code, message, retryable, correctable, httpStatus, details: undefined });
  });

  it("X-5 is an Error called CallError", () => {
    const error = new CallError("TIMEOUT", "Too slow.");
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe("CallError");
    expect(String(error)).toBe("CallError: Too slow.");
    expect(error.stack).toMatch(/^CallError: Too slow\.\n\s+at /);
    expect(Object.keys(error)).not.toContain("name");
  });

  it("X-5 gives a declared domain code the traits of EXECUTION_ERROR", () => {
    const error = new CallError("OUT_OF_STOCK");
    expect(error.code).toBe("OUT_OF_STOCK");
    expect(error.message).toBe(ERROR_CODES.EXECUTION_ERROR.message);
    expect(error).toMatchObject({ httpStatus: 500, retryable: false, correctable: false });
  });

  it("X-5 lets a declared error bring its own status and outlook", () => {
    const options = { httpStatus: 409, retryable: true, correctable: true };
    expect(new CallError("OUT_OF_STOCK", "None left.", options)).toMatchObject({
      message: "None left.",
      ...options,
    });
    expect(new CallError("TIMEOUT", "x", { retryable: false })).toMatchObject({ retryable: false });
    expect(new CallError("VALIDATION_ERROR", "x", { correctable: false })).toMatchObject({
      correctable: false,
    });
  });

  it.each([400, 599])("X-5 accepts the status %d", (httpStatus) => {
    expect(new CallError("TIMEOUT", "x", { httpStatus }).httpStatus).toBe(httpStatus);
  });

  it.each([399, 600, 404.5, Number.NaN, undefined])(
    "X-5 falls back to the table on the status %d",
    (httpStatus) => {
      expect(new CallError("TIMEOUT", "x", { httpStatus }).httpStatus).toBe(504);
    },
  );

  it("X-5 falls back to the table on flags that are not booleans", () => {
    const nonsense = { retryable: 0, correctable: "yes" } as unknown as { retryable: boolean };
    expect(new CallError("TIMEOUT", "x", nonsense)).toMatchObject({ retryable: true, correctable: false });
  });

  it("X-5 never throws on a code or message of the wrong type", () => {
    for (const code of [undefined, null, 7, {}, ""] as unknown as string[]) {
      expect(new CallError(code, throwing as unknown as string)).toMatchObject({
        code: "UNKNOWN_ERROR",
        message: ERROR_CODES.UNKNOWN_ERROR.message,
      });
    }
    expect(new CallError("TIMEOUT", "").message).toBe(ERROR_CODES.TIMEOUT.message);
  });

  it("X-5 refuses details in the place of its options, which would be lost", () => {
    const make = (options: object) => () => new CallError("SOLD_OUT", "None left.", options as never);
    expect(make({ sku: 7 })).toThrow(
      new TypeError(
        'There is no option "sku" of a CallError. Facts for the caller go into details: { details: { "sku": … } }.',
      ),
    );
    expect(make({ detail: 7 })).toThrow('no option "detail" of a CallError; did you mean "details"?');
    expect(make({ details: 1, ["x".repeat(500)]: 1 })).toThrow(`"${"x".repeat(80)}"`);
    expect(make(["a"])).toThrow(TypeError);
    expect(make({ sku: undefined, details: 7 })()).toMatchObject({ code: "SOLD_OUT", details: 7 });
    expect(make(Object.create({ sku: 7 }))()).toMatchObject({ code: "SOLD_OUT", details: undefined });
  });

  it("X-5 keeps the cause, even undefined, out of sight", () => {
    const cause = new Error(SECRET);
    expect(new CallError("TIMEOUT", "x", { cause }).cause).toBe(cause);
    expect("cause" in new CallError("TIMEOUT", "x", { cause: undefined })).toBe(true);
    expect("cause" in new CallError("TIMEOUT", "x", {})).toBe(false);
    expect(Object.keys(new CallError("TIMEOUT", "x", { cause }))).not.toContain("cause");
  });

  it("X-5 detaches details from what it was given", () => {
    const details = { items: [1] };
    const error = new CallError("CONFLICT", "x", { details });
    details.items.push(2);
    expect(error.details).toEqual({ items: [1] });
  });

  it("X-5 writes code, message, outlook and details to JSON, and nothing else", () => {
    const error = new CallError("CONFLICT", "Taken.", { cause: new Error(SECRET), details: { id: 7 } });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: "CONFLICT",
      message: "Taken.",
      retryable: false,
      correctable: true,
      details: { id: 7 },
    });
    expect(Object.keys(new CallError("TIMEOUT").toJSON())).toEqual([
      "code",
      "message",
      "retryable",
      "correctable",
    ]);
  });

  it("X-5 keeps details that are null, zero or empty", () => {
    for (const details of [null, 0, "", false]) {
      expect(new CallError("CONFLICT", "x", { details }).toJSON()).toHaveProperty("details", details);
    }
  });
});

describe("the stack of a CallError", () => {
  const limit = Error.stackTraceLimit;
  afterEach(() => {
    Error.stackTraceLimit = limit;
  });

  it("X-5 can be left out, and the limit of the process stays as it was", () => {
    Error.stackTraceLimit = 7;
    expect(new CallError("TIMEOUT", "Too slow.", { stack: false }).stack).toBe("CallError: Too slow.");
    expect(Error.stackTraceLimit).toBe(7);
    expect(new Error("next").stack).toContain("\n");
  });

  it("X-5 is kept unless asked otherwise", () => {
    expect(new CallError("TIMEOUT", "x", { stack: true }).stack).toContain("errors.test.ts");
    expect(new CallError("TIMEOUT", "x").stack).toContain("errors.test.ts");
  });

  it("X-5 is left out when a foreign failure is turned into one: the cause has its own", () => {
    expect(toCallError(new Error(SECRET)).stack).toBe(`CallError: ${ERROR_CODES.EXECUTION_ERROR.message}`);
  });

  it("X-5 survives a process that forbids changing the limit", () => {
    const before = Object.getOwnPropertyDescriptor(Error, "stackTraceLimit") as PropertyDescriptor;
    Object.defineProperty(Error, "stackTraceLimit", { ...before, writable: false });
    try {
      expect(new CallError("TIMEOUT", "x", { stack: false }).code).toBe("TIMEOUT");
    } finally {
      Object.defineProperty(Error, "stackTraceLimit", before);
    }
  });
});

describe("isCallError", () => {
  it("X-5 recognises its own, subclasses included", () => {
    class Special extends CallError {}
    expect(isCallError(new CallError("TIMEOUT"))).toBe(true);
    expect(isCallError(new Special("TIMEOUT"))).toBe(true);
  });

  it("X-5 recognises an error of another copy of the package, both ways", async () => {
    const other = await otherCopy();
    expect(other.CallError).not.toBe(CallError);
    expect(isCallError(new other.CallError("TIMEOUT"))).toBe(true);
    expect(other.isCallError(new CallError("TIMEOUT"))).toBe(true);
  });

  it.each([
    ["undefined", undefined],
    ["null", null],
    ["a string", "TIMEOUT"],
    ["a function", () => undefined],
    ["an error", new Error("x")],
    ["an error with a code", Object.assign(new Error("x"), { code: "TIMEOUT", toJSON: () => ({}) })],
    ["its JSON", new CallError("TIMEOUT").toJSON()],
  ])("X-5 does not take %s for one", (_, value) => {
    expect(isCallError(value)).toBe(false);
  });

  const brand = Symbol.for("waybill.CallError");
  const complete = { [brand]: true, code: "X", toJSON: () => ({}) };

  it("X-5 takes a branded error of the right shape for one of another copy", () => {
    expect(isCallError(Object.assign(new Error("x"), complete))).toBe(true);
  });

  it.each([
    ["has no brand", Object.assign(new Error("x"), { ...complete, [brand]: "yes" })],
    ["is no error", { ...complete, message: "x" }],
    ["has no code", Object.assign(new Error("x"), { ...complete, code: 7 })],
    ["has no message", Object.assign(new Error("x"), { ...complete, message: 7 })],
    ["has no toJSON", Object.assign(new Error("x"), { ...complete, toJSON: undefined })],
  ])("X-5 does not take a value for one that %s", (_, value) => {
    expect(isCallError(value)).toBe(false);
  });

  it("X-5 never throws on getters, traps or revoked proxies", () => {
    const { proxy, revoke } = Proxy.revocable(new CallError("TIMEOUT"), {});
    revoke();
    const trapped = new Proxy(new CallError("TIMEOUT"), { get: throwing, getPrototypeOf: throwing });
    const getter = Object.defineProperty(new Error("x"), brand, { get: throwing });
    for (const value of [proxy, trapped, getter]) expect(isCallError(value)).toBe(false);
  });
});

describe("toCallError", () => {
  it("X-5 gives a CallError back as it is", () => {
    const error = new CallError("CONFLICT");
    expect(toCallError(error)).toBe(error);
  });

  it("X-5 rebuilds an error of another copy with everything it says", async () => {
    const other = await otherCopy();
    const thrown = new other.CallError("OUT_OF_STOCK", "None left.", {
      details: { left: 0 },
      httpStatus: 409,
      retryable: true,
      correctable: true,
    });
    const error = toCallError(thrown);
    expect(error).toBeInstanceOf(CallError);
    expect(error.toJSON()).toEqual(thrown.toJSON());
    expect(error.httpStatus).toBe(409);
    expect(error.cause).toBe(thrown);
    expect(error.stack).toBe("CallError: None left.");
  });

  it("X-5 does not pass on a proxy around an error, which could answer differently each time", () => {
    let reads = 0;
    const fickle = new Proxy(new CallError("TIMEOUT"), {
      get: (target, key) => (++reads > 4 ? throwing() : Reflect.get(target, key)),
    });
    const error = toCallError(fickle);
    expect(error.code).toBe("EXECUTION_ERROR");
    expect(error.cause === fickle).toBe(true);
  });

  it.each([
    ["ABORTED", "an abort", new DOMException(SECRET, "AbortError")],
    ["TIMEOUT", "a timeout", new DOMException(SECRET, "TimeoutError")],
    ["EXECUTION_ERROR", "any other DOMException", new DOMException(SECRET, "NotFoundError")],
    ["ABORTED", "an error named AbortError", Object.assign(new Error(SECRET), { name: "AbortError" })],
    ["EXECUTION_ERROR", "an object named AbortError", { name: "AbortError", message: SECRET }],
    ["EXECUTION_ERROR", "an error with a code", Object.assign(new Error(SECRET), { code: "TIMEOUT" })],
    ["EXECUTION_ERROR", "a TypeError", new TypeError(SECRET)],
    ["EXECUTION_ERROR", "a string", SECRET],
    ["EXECUTION_ERROR", "null", null],
    ["EXECUTION_ERROR", "undefined", undefined],
    ["EXECUTION_ERROR", "a symbol", Symbol(SECRET)],
  ] as const)("X-5 makes %s of %s, in its own words", (code, _, thrown) => {
    const error = toCallError(thrown);
    expect(error.code).toBe(code);
    expect(error.message).toBe(ERROR_CODES[code].message);
    expect(error.cause).toBe(thrown);
    expect(error.details).toBeUndefined();
  });

  it("X-5 understands the reasons a real signal gives", async () => {
    expect(toCallError(AbortSignal.abort().reason).code).toBe("ABORTED");
    const timedOut = AbortSignal.timeout(0);
    await new Promise((resolve) => timedOut.addEventListener("abort", resolve));
    expect(toCallError(timedOut.reason).code).toBe("TIMEOUT");
  });

  it("X-5 survives errors whose name cannot be read", () => {
    const thrown = Object.defineProperty(new Error("x"), "name", { get: throwing });
    expect(toCallError(thrown)).toMatchObject({ code: "EXECUTION_ERROR", cause: thrown });
  });
});

describe("the law of thrown values", () => {
  const text = fc.string().map((rest) => `${SECRET}${rest}`);
  const trap = fc.constantFrom("get", "getPrototypeOf", "ownKeys", "has", "getOwnPropertyDescriptor");
  const anything = fc.anything({
    withBigInt: true,
    withMap: true,
    withNullPrototype: true,
    withTypedArray: true,
  });
  // Behind a function, because fast-check itself looks into the values it makes.
  const thrownValues: fc.Arbitrary<() => unknown> = fc.oneof(
    text.map((message) => () => message),
    text.map((message) => () => new Error(message)),
    text.map((cause) => () => new Error("x", { cause })),
    text.map((name) => () => Object.assign(new Error("x"), { name, code: name, stack: name })),
    text.map((details) => () => Object.assign(new Error("x"), { details, toJSON: () => details })),
    text.map((message) => () => new DOMException(message, "AbortError")),
    text.map((message) => () => ({ message, code: "TIMEOUT", toString: () => message })),
    trap.map((name) => () => new Proxy(new Error(SECRET), { [name]: throwing })),
    trap.map((name) => () => new Proxy(new CallError("TIMEOUT"), { [name]: throwing })),
    anything.map((value) => () => [SECRET, value]),
    anything.map((value) => () => value),
  );

  it("X-5 turns anything thrown into a CallError whose JSON holds none of its text", () => {
    fc.assert(
      fc.property(thrownValues, (make) => {
        const thrown = make();
        const error = toCallError(thrown);
        expect(error).toBeInstanceOf(CallError);
        expect(isCallError(error)).toBe(true);
        expect(Object.is(error.cause, thrown)).toBe(true);
        expect(Object.hasOwn(ERROR_CODES, error.code)).toBe(true);
        expect(`${JSON.stringify(error)} ${error}`).not.toContain("s3cr3t");
      }),
    );
  });
});

describe("details that stay in this process", () => {
  it("X-5 are there for who catches the error, and left out of every wire form", () => {
    const details = { status: 500, body: "at /srv/app.js", problem: { title: "x" } };
    const error = new CallError("EXECUTION_ERROR", "It failed.", { details, local: ["body", "problem"] });
    expect(error.details).toEqual(details);
    expect(error.toJSON().details).toEqual({ status: 500 });
    expect(toProblem(error).details).toEqual({ status: 500 });
    expect(JSON.stringify(toWire(error))).not.toContain("/srv/app.js");
    const bare = new CallError("EXECUTION_ERROR", "It failed.", { details: { body: 1 }, local: ["body"] });
    expect(bare.toJSON()).not.toHaveProperty("details");
    expect(new CallError("CONFLICT", "No.", { details: ["body"], local: ["body"] }).toJSON().details).toEqual(
      ["body"],
    );
  });
});
