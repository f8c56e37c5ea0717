import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ToolResultError } from "../client/tool-result-error.ts";
import { toolError } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import { fromWire, toWire } from "./wire.ts";

const throwing = (): never => {
  throw new Error("secret");
};

const payloadOf = (error: unknown): unknown => (toWire(error) as { $waybill: unknown[] }).$waybill[1];
const read = (payload: unknown): Error => fromWire({ $waybill: ["error", payload] }) as Error;
const overTheWire = <T>(value: T): T => fromWire(JSON.parse(JSON.stringify(toWire(value)))) as T;

const CALL_ERROR = { code: "TIMEOUT", message: "Late.", retryable: true, correctable: false };

describe("a CallError on a wire", () => {
  it("What JSON cannot hold: goes as what it shows, and its status where that is its own", () => {
    expect(payloadOf(new CallError("TIMEOUT", "Late.", { cause: "secret" }))).toStrictEqual(CALL_ERROR);
    const taken = new CallError("SOLD_OUT", "None left.", { httpStatus: 410, details: { left: 0 } });
    expect(payloadOf(taken)).toStrictEqual({ ...taken.toJSON(), httpStatus: 410 });
  });

  it("What JSON cannot hold: comes back as a CallError with everything but its cause and stack", () => {
    const record = fc.record(
      {
        details: fc.jsonValue({ maxDepth: 5 }),
        httpStatus: fc.integer({ min: 400, max: 599 }),
        retryable: fc.boolean(),
        correctable: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    const code = fc.oneof(fc.constantFrom("TIMEOUT", "NO_RESPONDER"), fc.string({ minLength: 1 }));
    fc.assert(
      fc.property(code, fc.string(), record, (code, message, options) => {
        const sent = new CallError(code, message, { ...options, cause: new Error("secret") });
        const { error } = overTheWire({ error: sent });
        expect(error).toBeInstanceOf(CallError);
        expect(error.toJSON()).toEqual(JSON.parse(JSON.stringify(sent)));
        expect(error.httpStatus).toBe(sent.httpStatus);
        expect(error).not.toHaveProperty("cause");
      }),
    );
  });

  it("What JSON cannot hold: details with the reserved key are details", () => {
    const details = { $waybill: ["bigint", "1"], __proto__: null };
    const error = overTheWire(new CallError("TIMEOUT", "Late.", { details }));
    expect(error.details).toEqual({ $waybill: ["bigint", "1"] });
  });

  it("What JSON cannot hold: details that go beyond the limits are bounded when read", () => {
    let deep: unknown = 0;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const { details } = read({ ...CALL_ERROR, details: deep }) as CallError;
    expect(JSON.stringify(details)).toBe(`${"[".repeat(16)}"[too deep]"${"]".repeat(16)}`);
    const polluting = JSON.parse('{"__proto__":{"polluted":1}}');
    const kept = (read({ ...CALL_ERROR, details: polluting }) as CallError).details as object;
    expect(Object.getPrototypeOf(kept)).toBe(Object.prototype);
    expect(JSON.stringify(kept)).toBe('{"__proto__":{"polluted":1}}');
  });

  it("What JSON cannot hold: a subclass with a toJSON of its own shows no more", () => {
    class Talkative extends CallError {
      override toJSON(): never {
        return { stack: this.stack, secret: 1 } as never;
      }
    }
    expect(payloadOf(new Talkative("TIMEOUT", "Late."))).toStrictEqual(CALL_ERROR);
  });

  it("What JSON cannot hold: one of another copy of this package goes as one", () => {
    const other = Object.assign(new Error("Late."), {
      ...{ [Symbol.for("waybill.CallError")]: true, code: "TIMEOUT", toJSON: throwing },
      ...{ retryable: true, correctable: "?", httpStatus: 9 },
    });
    expect(payloadOf(other)).toStrictEqual(CALL_ERROR);
  });
});

describe("any other error on a wire", () => {
  class Lost extends Error {
    override readonly name = "Lost";
    readonly token = "secret";
    toJSON(): object {
      return { ...this, stack: this.stack };
    }
  }

  it.each([
    ["of the language", new TypeError("Bad."), "TypeError"],
    ["of a class", new Lost("Bad.", { cause: new Error("secret") }), "Lost"],
    ["of the platform", new DOMException("Bad.", "AbortError"), "AbortError"],
    ["of many", new AggregateError([new Error("secret")], "Bad."), "AggregateError"],
  ])("What JSON cannot hold: one %s goes as its name and message alone", (_, error, name) => {
    expect(payloadOf(error)).toStrictEqual({ name, message: "Bad." });
    const back = overTheWire([error])[0] as Error;
    expect(Object.getPrototypeOf(back)).toBe(Error.prototype);
    expect(Object.getOwnPropertyDescriptor(back, "name")).toMatchObject({ value: name, enumerable: false });
    expect([back.message, Object.keys(back), "cause" in back]).toEqual(["Bad.", [], false]);
    expect(back.stack).not.toBe(error.stack);
  });

  it("What JSON cannot hold: one with a code that is no CallError does not come back as one", () => {
    const refused = new ToolResultError(toolError({ why: 1 }, { code: "TIMEOUT", message: "No." }), "a.b");
    expect(payloadOf(refused)).toStrictEqual({ name: "ToolResultError", message: refused.message });
    expect(overTheWire(refused)).not.toBeInstanceOf(CallError);
  });

  it("What JSON cannot hold: one whose name or message is no text goes with what there is", () => {
    expect(payloadOf(Object.assign(new Error("x"), { name: 7, message: {} }))).toStrictEqual({
      name: "Error",
      message: "",
    });
  });

  it("What JSON cannot hold: one that throws when read is a typed error", () => {
    const hostile = Object.defineProperty(new Error("x"), "message", { get: throwing });
    expect(() => toWire([hostile])).toThrow(/could not be read/);
  });

  it("What JSON cannot hold: one of another realm has no fields to show", () => {
    expect(() => toWire(runInNewContext("new Error('x')"))).toThrow(/without fields to show/);
  });

  it("What JSON cannot hold: two that are each other's cause cross", () => {
    const error = new Error("x");
    error.cause = error;
    expect(payloadOf({ toJSON: () => error })).toStrictEqual({ name: "Error", message: "x" });
  });
});

describe("limits of errors on a wire", () => {
  const long = (length: number) => "x".repeat(length);

  it("What JSON cannot hold: names and codes of 200 and messages of 8,192 characters cross whole, one more is cut", () => {
    const make = (name: number, message: number) =>
      Object.assign(new Error(long(message)), { name: long(name) });
    expect(payloadOf(make(200, 8_192))).toEqual({ name: long(200), message: long(8_192) });
    expect(payloadOf(make(201, 8_193))).toEqual({ name: long(200), message: long(8_192) });
    const called = (code: number, message: number) => payloadOf(new CallError(long(code), long(message)));
    expect(called(200, 8_192)).toMatchObject({ code: long(200), message: long(8_192) });
    expect(called(201, 8_193)).toEqual(called(200, 8_192));
  });

  it("What JSON cannot hold: what is longer than that is refused when read", () => {
    expect(read({ name: long(200), message: long(8_192) }).message).toHaveLength(8_192);
    expect(read({ ...CALL_ERROR, code: long(200), message: long(8_192) })).toMatchObject({ code: long(200) });
    for (const payload of [
      { name: long(201), message: "" },
      { name: "", message: long(8_193) },
      { ...CALL_ERROR, code: long(201) },
      { ...CALL_ERROR, message: long(8_193) },
    ]) {
      expect(() => read(payload)).toThrow(/tag is malformed/);
    }
  });

  it("What JSON cannot hold: no pair of surrogates is split", () => {
    const message = (text: string) => (payloadOf(new Error(text)) as { message: string }).message;
    expect(message(`${long(8_191)}😀`)).toBe(long(8_191));
    expect(message(`${long(8_190)}😀x`)).toBe(`${long(8_190)}😀`);
    expect(message(`${long(8_191)}\ud800x`)).toBe(`${long(8_191)}\ud800`);
  });

  it("What JSON cannot hold: an error is no level of its own", () => {
    const error = new CallError("TIMEOUT", "Late.", { details: [[[1]]] });
    expect(fromWire(toWire(error, { maxDepth: 0 }), { maxDepth: 0 })).toBeInstanceOf(CallError);
  });

  it("What JSON cannot hold: errors among the data can be refused instead", () => {
    expect(() => toWire({ reason: new Error("x") }, { errors: false })).toThrow(
      /at "\/reason" .* it is an error/,
    );
    expect(toWire({ reason: "x" }, { errors: false })).toEqual({ reason: "x" });
  });
});
