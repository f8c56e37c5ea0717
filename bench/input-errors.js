// @ts-check
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import { Compile } from "typebox/schema";
import { z } from "zod";
import { runBench } from "./bench.js";
import { zodSchemas } from "./fixtures/zod-schemas.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeTime, printTable } from "./report.js";
import { createOrpcClient } from "./sides/orpc.js";
import { createTrpcCaller } from "./sides/trpc.js";
import { createWaybill } from "./sides/waybill.js";
import { compileSchema, Type } from "./waybill.js";

const schema = Type.Object({
  id: Type.String({ minLength: 1 }),
  title: Type.String({ minLength: 3 }),
  status: Type.Enum(["open", "closed", "blocked"]),
  priority: Type.Integer({ minimum: 0, maximum: 5 }),
  done: Type.Boolean(),
  score: Type.Number({ minimum: 0 }),
});
const zodSchema = z.object({
  id: z.string().min(1),
  title: z.string().min(3),
  status: z.enum(["open", "closed", "blocked"]),
  priority: z.int().min(0).max(5),
  done: z.boolean(),
  score: z.number().min(0),
});

/** @param {(seed: number) => object} make */
const pool = (make) => Array.from({ length: 64 }, (_, seed) => make(seed));
const someWrong = pool((seed) => ({
  id: `item-${seed}`,
  title: "x",
  status: "lost",
  priority: `${seed}`,
  done: true,
}));
const allWrong = pool((seed) => ({
  id: "",
  title: seed,
  status: "lost",
  priority: 9,
  done: "no",
  score: -seed - 1,
}));

const compiled = compileSchema(schema);
const interpreted = compileSchema(schema, { codegen: false });
const typebox = Compile(schema);
const validate = new Ajv({ allErrors: true }).compile(schema);

/** @type {Record<string, (value: object) => { readonly length: number }>} */
const sides = {
  waybill: (value) => compiled.errors(value),
  "waybill without code generation": (value) => interpreted.errors(value),
  "ajv allErrors": (value) => {
    validate(value);
    return validate.errors ?? [];
  },
  "zod safeParse": (value) => zodSchema.safeParse(value).error?.issues ?? [],
  "typebox Errors": (value) => typebox.Errors(value)[1],
};

/** @param {readonly object[]} values @param {number} wrong @returns {import("./bench.js").Case} */
const createCase = (values, wrong) => async (name, options) => {
  for (const [side, list] of Object.entries(sides)) {
    for (const value of values)
      assert.ok(list(value).length >= wrong, `${side} does not list ${wrong} errors`);
  }
  const comparison = await interleave(sides, { ...timing(options), values, sync: true });
  printTable(`${name} (${wrong} wrong of 6 fields)`, comparison, "waybill");
  return [judgeTime(name, comparison, { side: "waybill", limit: 2e3 })];
};

/** @type {import("./bench.js").Case} */
const refusedCall = async (name, options) => {
  const { registry, operations } = createWaybill();
  const orpc = createOrpcClient(zodSchemas);
  const trpc = createTrpcCaller(zodSchemas);
  const bad = { id: "", page: -1, order: "up", verbose: true };
  /** @param {unknown} thrown */
  const caught = (thrown) => thrown;
  const callers = {
    waybill: () => registry.execute(operations.small, bad).catch(caught),
    "oRPC + zod": () => orpc.small(bad).catch(caught),
    "tRPC + zod": () => trpc.small(bad).catch(caught),
  };
  for (const side of Object.values(callers)) assert.ok((await side()) instanceof Error);
  printTable(
    `${name} (a whole call, error made and caught)`,
    await interleave(callers, timing(options)),
    "waybill",
  );
  return [];
};

await runBench(
  "input-errors",
  {
    some: createCase(someWrong, 4),
    all: createCase(allWrong, 6),
    "refused-call": refusedCall,
  },
  { apart: true },
);
