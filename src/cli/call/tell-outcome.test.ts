import { afterAll, describe, expect, it } from "vitest";
import { moduleOf, openProject } from "../../../test/command-project.ts";
import { unknownMembers } from "./tell-outcome.ts";

const SIZE = { type: "object", properties: { height: { type: "number" } } };
const SCHEMA = {
  type: "object",
  properties: { kg: { type: "number" }, express: { type: "boolean" }, size: SIZE },
  required: ["kg"],
};

describe("members that a schema does not name", () => {
  const keysOf = (more: object, rule: "allowed" | "any" = "allowed") =>
    unknownMembers([["expres"]], { ...SCHEMA, ...more }, rule).map(({ key }) => key);

  it("are told with the names that may be meant, further in too", () => {
    const paths = [["expres"], ["size", "hieght"], ["height"], ["zzz"], ["kg"], ["size", "height"]];
    expect(unknownMembers(paths, SCHEMA, "allowed")).toEqual([
      { key: "expres", near: ["express"] },
      { key: "size.hieght", near: ["size.height"] },
      { key: "height", near: ["size.height"] },
      { key: "zzz", near: [] },
    ]);
  });

  it("are none where the schema lets others in on purpose, names none, or forbids them and says so itself", () => {
    expect(keysOf({ additionalProperties: true })).toEqual(["expres"]);
    expect(keysOf({ additionalProperties: { type: "boolean" } })).toEqual([]);
    expect(keysOf({ patternProperties: { "^e": {} } })).toEqual([]);
    expect(keysOf({ allOf: [{ patternProperties: { "^e": {} } }] })).toEqual([]);
    expect(keysOf({ properties: undefined })).toEqual([]);
    expect(keysOf({ additionalProperties: false })).toEqual([]);
    expect(keysOf({ additionalProperties: false }, "any")).toEqual(["expres"]);
    expect(unknownMembers([["__proto__"], ["constructor"]], SCHEMA, "allowed")).toHaveLength(2);
  });
});

describe("a call with a mistyped key", () => {
  const project = openProject({
    "ops.mjs": moduleOf("quote.price", `inputSchema: ${JSON.stringify(SCHEMA)}`),
    "waybill.config.json": { operations: "ops.mjs" },
  });
  afterAll(() => project.remove());
  const call = (...words: string[]) => project.run(["call", "quote.price", ...words]);

  it("runs, and says on stderr which one is meant", async () => {
    expect(await call("kg=2", "expres=true")).toEqual({
      code: 0,
      out: '"price"\n',
      err: 'waybill: "quote.price" names no input "expres"; did you mean "express"? It is sent all the same.\n',
    });
    expect(await call("kg=2", "zzz=\u001b[31m", "-q")).toMatchObject({ code: 0, err: "" });
    expect((await call("kg=2", "zz\u001b[31mz=1")).err).toBe(
      'waybill: "quote.price" names no input "zzz". It is sent all the same.\n',
    );
    expect(await call('{"kg": 2, "expres": true}')).toMatchObject({ code: 0, err: "" });
  });

  it("names it where the call fails, once", async () => {
    const { code, err } = await call('{"kgs": 2}');
    expect(code).toBe(3);
    expect(err).toContain('\n  kg is missing\n  kgs is not known; did you mean "kg"?\n');
    const typed = await call("kgs=2");
    expect(typed.err).toContain('names no input "kgs"; did you mean "kg"?');
    expect(typed.err).not.toContain("kgs is not known");
  });

  it("says how the operation is described, from the same place", async () => {
    const { err } = await call("-c", "waybill.config.json", "{}");
    expect(err).toContain('"waybill describe quote.price --config waybill.config.json" shows what it takes.');
  });
});

describe("a handler of one's own that throws", () => {
  const project = openProject({
    "ops.mjs": `export const fail = { namespace: "mine", name: "fail", handler: () => { throw new RangeError("No shelf \u001b[31m7."); } };
export const odd = { namespace: "mine", name: "odd", handler: () => { throw { shelf: 7 }; } };
export const leak = { namespace: "mine", name: "leak", handler: () => { throw new Error("Refused with " + "0123456789-key-of-the-shop"); } };
export const outer = { namespace: "mine", name: "outer", handler: (_, { execute }) => execute("mine.nobody") };
`,
    "waybill.config.json": {
      operations: "ops.mjs",
      serve: { auth: { tokens: { ann: { token: "0123456789-key-of-the-shop" } } } },
    },
  });
  afterAll(() => project.remove());

  it("is told without secrets of the config", async () => {
    const { err } = await project.run(["call", "mine.leak", "--verbose"]);
    expect(err).toContain("The handler threw Error: Refused with ***\n");
  });

  it("is told with --verbose, with what it threw and where", async () => {
    const { code, err } = await project.run(["call", "mine.fail"]);
    expect(code).toBe(3);
    expect(err).toBe(
      "waybill: The operation failed unexpectedly. (EXECUTION_ERROR)\n  --verbose shows what the handler threw.\n",
    );
    const told = await project.run(["call", "mine.fail", "--verbose"]);
    expect(told.err).toMatch(/RangeError: No shelf 7\.\n {4}at .*ops\.mjs/);
    expect(told.err).not.toContain("--verbose");
  });

  it("is told whatever it threw, a failure of a call within it too", async () => {
    const told = async (id: string) => (await project.run(["call", id, "--verbose"])).err;
    expect(await told("mine.odd")).toContain('  The handler threw {"shelf":7}.\n');
    expect(await told("mine.outer")).toContain(
      '  The handler threw OPERATION_NOT_FOUND: There is no operation "mine.nobody".\n',
    );
  });

  it("is in the log of the gateway where one runs", async () => {
    const gateway = await project.serve();
    const { err } = await project.run(["call", "mine.fail"]);
    await gateway.stop();
    expect(err).toContain("(EXECUTION_ERROR)\n  The log of the gateway says what its handler threw.\n");
  });

  it("is not told to programs, which read the error as callers do", async () => {
    const { err } = await project.run(["call", "mine.fail", "--json"]);
    expect(JSON.parse(err)).toEqual({
      error: {
        code: "EXECUTION_ERROR",
        message: "The operation failed unexpectedly.",
        retryable: false,
        correctable: false,
      },
    });
  });
});

describe("a call that waits for a person's approval", () => {
  const project = openProject({
    "ops.mjs": moduleOf("bank.pay"),
    "waybill.config.json": {
      operations: "ops.mjs",
      policies: { "bank.*": { approve: { holdMs: 50, own: true } } },
    },
  });
  afterAll(() => project.remove());

  it("says how a person comes to decide it, with and without a gateway that runs", async () => {
    const alone = await project.run(["call", "bank.pay"]);
    expect(alone.code).toBe(3);
    expect(alone.err).toMatch(
      /\(APPROVAL_REQUIRED\)\n {2}A person can approve it where a gateway runs: start one with "waybill serve"\.\n$/,
    );
    const gateway = await project.serve();
    const { err } = await project.run(["call", "bank.pay"]);
    expect(err).toMatch(
      /\n {2}Page: http:\S+\/approvals\/\S+\n {2}Waits until: \S+Z\n {2}"waybill approvals" shows what waits, to those who may approve it\.\n$/,
    );
    const id = /\(([0-9a-f]{12})\)/.exec(err)?.[1] ?? "";
    await project.run(["approvals", "deny", id, "--comment", "Not on a Friday."]);
    const denied = await project.run(["call", "bank.pay"]);
    await gateway.stop();
    expect(denied.err).toMatch(
      /\(APPROVAL_DENIED\)\n {2}Why: Not on a Friday\.\n {2}Page: \S+\n {2}Denied until: \S+Z\n$/,
    );
  });
});
