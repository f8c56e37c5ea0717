import assert from "node:assert/strict";
import {
  parcelLatest,
  parcelListAll,
  parcelSend,
  parcelSender,
  parcelTrack,
} from "../generated/hey-api/index.ts";

const tracked = await parcelTrack({ query: { code: "A-7" } });
const state: "new" | "sent" | undefined = tracked.data?.state;
assert.deepEqual([tracked.data?.to.name, state], ["Ada", "new"]);

const sent = await parcelSend({ body: { to: { name: "Bob" }, weight: 2 } });
assert.equal(sent.data?.price.toFixed(1), "6.0");

const all = await parcelListAll();
assert.deepEqual(
  all.data?.map(({ code }) => code),
  ["A-1", "A-2"],
);

const latest = await parcelLatest();
const sender = await parcelSender();
assert.deepEqual([latest.data?.to.name, sender.data?.street.length], ["Ada", 13]);

/** Never called: every line in it is wrong. */
export async function wrong(): Promise<void> {
  // @ts-expect-error a member of the query is missing
  await parcelTrack({ query: {} });
  // @ts-expect-error a parameter of another type
  await parcelTrack({ query: { code: "a", limit: "x" } });
  // @ts-expect-error a body without what is required
  await parcelSend({ body: { to: { name: "a" } } });
  // @ts-expect-error a member of another type
  await parcelSend({ body: { to: { name: "a" }, weight: "2" } });
  // @ts-expect-error a member that is not there
  await parcelSend({ body: { to: { name: "a" }, weight: 2, fragile: true } });
  // @ts-expect-error a member that the result does not have
  tracked.data?.price;
  // @ts-expect-error a member of the result of another type
  const price: string | undefined = sent.data?.price;
  // @ts-expect-error a result that is a list, used as one parcel
  all.data?.code;
  // @ts-expect-error a member that a result shared with others does not have
  latest.data?.price;
  // @ts-expect-error a member that a result that is a definition does not have
  sender.data?.price;
  assert.ok(price);
}
