// @ts-check
import { ownCopy } from "../fixtures/own-copy.js";
import { handlers, SIZES } from "../fixtures/values.js";

async function loadOperations() {
  const entries = SIZES.map(
    async (size) =>
      /** @type {const} */ ([`bench.${size}`, { handler: handlers[size], ...(await ownCopy(size)) }]),
  );
  return /** @type {ReadonlyMap<string, any>} */ (new Map(await Promise.all(entries)));
}

/**
 * The least that does the same job by hand: a Map lookup, checks written for these schemas, an envelope
 * literal. Nothing here could be reused for another operation.
 */
export async function createFloor() {
  const operations = await loadOperations();
  /** @param {string} id @param {any} input */
  return async function execute(id, input) {
    const operation = operations.get(id);
    if (operation === undefined) throw new Error(`There is no operation ${id}.`);
    if (!operation.isInput(input)) throw new TypeError(`The input of ${id} does not match its schema.`);
    const data = await operation.handler(input);
    if (!operation.isOutput(data)) throw new TypeError(`The result of ${id} does not match its schema.`);
    return { data, meta: { source: "local", operationId: id, timestamp: Date.now() } };
  };
}

/** The floor that also drops unknown properties from the result, as Waybill and zod do. */
export async function createStrippingFloor() {
  const operations = await loadOperations();
  /** @param {string} id @param {any} input */
  return async function execute(id, input) {
    const operation = operations.get(id);
    if (operation === undefined) throw new Error(`There is no operation ${id}.`);
    if (!operation.isInput(input)) throw new TypeError(`The input of ${id} does not match its schema.`);
    const result = await operation.handler(input);
    if (!operation.isOutput(result)) throw new TypeError(`The result of ${id} does not match its schema.`);
    const data = operation.strip(result);
    return { data, meta: { source: "local", operationId: id, timestamp: Date.now() } };
  };
}
