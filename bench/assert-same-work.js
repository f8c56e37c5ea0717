// @ts-check
import assert from "node:assert/strict";
import { BROKEN_PAGE, badInputs, EXCESS_PAGE, handlers, inputs, makeInput } from "./fixtures/values.js";

/**
 * @typedef {object} Caller
 * @property {(input: any) => Promise<any>} call
 * @property {boolean} envelope whether the result comes in an envelope
 * @property {boolean} strips whether properties no schema names are dropped from the result
 */

/** @param {unknown} value */
const hasSecret = (value) => JSON.stringify(value).includes('"secret"');

/**
 * Makes sure, before anything is timed, that every side gives the same results and refuses the same inputs
 * and outputs; a side that checks less has no business in the table.
 * @param {import("./fixtures/values.js").Size} size
 * @param {Readonly<Record<string, Caller>>} callers
 */
export async function assertSameWork(size, callers) {
  for (const [name, { call, envelope, strips }] of Object.entries(callers)) {
    /** @param {any} input */
    const dataOf = async (input) => (envelope ? (await call(input)).data : call(input));
    for (const input of inputs) {
      assert.deepEqual(
        await dataOf(input),
        await handlers[size](input),
        `${name} returns another ${size} result`,
      );
    }
    for (const bad of badInputs) {
      await assert.rejects(call(bad), `${name} accepts the input ${JSON.stringify(bad)}`);
    }
    await assert.rejects(call(makeInput(BROKEN_PAGE)), `${name} accepts a broken ${size} result`);
    assert.equal(hasSecret(await dataOf(makeInput(EXCESS_PAGE))), !strips, `${name} and unknown properties`);
    if (envelope) assertEnvelope(await call(makeInput(0)), `bench.${size}`, name);
  }
}

/** @param {any} result @param {string} id @param {string} name */
function assertEnvelope(result, id, name) {
  assert.equal(result.meta.source, "local", name);
  assert.equal(result.meta.operationId, id, name);
  assert.equal(typeof result.meta.timestamp, "number", name);
}
