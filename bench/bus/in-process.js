// @ts-check
import { createPubSub } from "@graphql-yoga/subscription";
import { createMemoryBus, PendingRequestMap, serveCalls } from "../waybill.js";
import { createRegistry } from "./operation.js";

/** @typedef {(input: { a: number, b: number }) => Promise<unknown>} Call */

/** @returns {Promise<Call>} */
export async function createWaybillCall() {
  const bus = createMemoryBus();
  await serveCalls(createRegistry(), bus);
  const map = new PendingRequestMap(bus);
  return (input) => map.call("bench.add", input);
}

/**
 * What anybody would write first: a map of resolvers by request id, in front of the same registry.
 * @returns {Call}
 */
export function createBareMap() {
  const registry = createRegistry();
  /** @type {Map<string, { resolve: (value: unknown) => void, reject: (error: unknown) => void }>} */
  const pending = new Map();
  /** @param {string} requestId @param {"resolve" | "reject"} how @param {unknown} value */
  const settle = (requestId, how, value) => {
    const waiting = pending.get(requestId);
    pending.delete(requestId);
    waiting?.[how](value);
  };
  /** @param {{ requestId: string, operationId: string, input: unknown }} event */
  const handle = ({ requestId, operationId, input }) => {
    registry.execute(operationId, input).then(
      (/** @type {unknown} */ output) => settle(requestId, "resolve", output),
      (/** @type {unknown} */ error) => settle(requestId, "reject", error),
    );
  };
  return (input) =>
    new Promise((resolve, reject) => {
      const requestId = crypto.randomUUID();
      pending.set(requestId, { resolve, reject });
      handle({ requestId, operationId: "bench.add", input });
    });
}

/**
 * Request and reply over a pub/sub: one topic for requests, one for each reply, in front of the same registry.
 * @returns {Call}
 */
export function createYogaCall() {
  const registry = createRegistry();
  /** @type {import("@graphql-yoga/subscription").PubSub<any>} */
  const pubSub = createPubSub();
  void (async () => {
    for await (const { requestId, operationId, input } of pubSub.subscribe("call.requested")) {
      const answer = (/** @type {unknown} */ output) =>
        pubSub.publish("call.responded", requestId, { requestId, output });
      registry.execute(operationId, input).then(answer, answer);
    }
  })();
  return async (input) => {
    const requestId = crypto.randomUUID();
    const replies = pubSub.subscribe("call.responded", requestId);
    const first = replies.next();
    pubSub.publish("call.requested", { requestId, operationId: "bench.add", input });
    const { value } = await first;
    await replies.return();
    return value.output;
  };
}
