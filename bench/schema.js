// @ts-check
import assert from "node:assert/strict";
import { Ajv } from "ajv";
import { Compile } from "typebox/schema";
import { Check } from "typebox/value";
import { runBench } from "./bench.js";
import { jsonSchemas } from "./fixtures/json-schemas.js";
import { ownCopy } from "./fixtures/own-copy.js";
import { SIZES, samples } from "./fixtures/values.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { printTable } from "./report.js";
import { compileSchema } from "./waybill.js";

/** @typedef {import("./fixtures/values.js").Size} Size */
/** @typedef {Record<string, (value: any) => unknown>} Checks */

/** @param {string} name @param {Size} size @param {Checks} checks @param {import("./options.js").BenchOptions} options */
async function compare(name, size, checks, options) {
  const values = samples[size];
  for (const [side, check] of Object.entries(checks)) {
    for (const value of values) assert.ok(check(value), `${side} refuses a ${size} value`);
    assert.ok(!check({ ...values[0], title: [], rows: 1 }), `${side} accepts a broken ${size} value`);
  }
  const comparison = await interleave(checks, { ...timing(options), values, sync: true });
  printTable(name, comparison, Object.keys(checks)[0] ?? "");
  return [];
}

/** @param {Size} size @returns {import("./bench.js").Case} */
const compiledCase = (size) => async (name, options) => {
  const schema = jsonSchemas[size];
  const waybill = compileSchema(schema);
  const typebox = Compile(schema);
  const ajv = new Ajv().compile(schema);
  const { isOutput } = await ownCopy(size);
  const checks = {
    "waybill check": (/** @type {any} */ value) => waybill.check(value),
    "waybill isClean": (/** @type {any} */ value) => waybill.isClean(value),
    "waybill normalize": (/** @type {any} */ value) => waybill.normalize(value).valid,
    "typebox Compile": (/** @type {any} */ value) => typebox.Check(value),
    ajv: (/** @type {any} */ value) => ajv(value),
    "by hand": isOutput,
  };
  return compare(name, size, checks, options);
};

/** @param {Size} size @returns {import("./bench.js").Case} */
const interpretedCase = (size) => async (name, options) => {
  const schema = jsonSchemas[size];
  const waybill = compileSchema(schema, { codegen: false });
  const checks = {
    "waybill check": (/** @type {any} */ value) => waybill.check(value),
    "waybill isClean": (/** @type {any} */ value) => waybill.isClean(value),
    "typebox Value.Check": (/** @type {any} */ value) => Check(schema, value),
  };
  return compare(name, size, checks, options);
};

const cases = SIZES.flatMap((size) => [
  [size, compiledCase(size)],
  [`${size}-without-codegen`, interpretedCase(size)],
]);
await runBench("schema", Object.fromEntries(cases), { apart: true });
