import assert from "node:assert/strict";
import { parcelLatest, parcelListAll, parcelSend, parcelSender, parcelTrack } from "../generated/orval.ts";

const tracked = await parcelTrack({ code: "A-7" });
if (tracked.status !== 200) throw new Error("not found");
const state: "new" | "sent" = tracked.data.state;
assert.deepEqual([tracked.data.to.name, state], ["Ada", "new"]);

const sent = await parcelSend({ to: { name: "Bob" }, weight: 2 });
if (sent.status !== 200) throw new Error("not sent");
assert.equal(sent.data.price.toFixed(1), "6.0");

const all = await parcelListAll();
if (all.status !== 200) throw new Error("no list");
const codes = all.data.map(({ code }) => code);
assert.deepEqual(codes, ["A-1", "A-2"]);
const latest = await parcelLatest();
const sender = await parcelSender();
if (latest.status !== 200 || sender.status !== 200) throw new Error("none");
assert.deepEqual([latest.data.to.name, sender.data.street.length], ["Ada", 13]);
const { data: latestParcel } = latest;
const { data: address } = sender;
const { data: parcel } = tracked;
const { data: result } = sent;
const { data: list } = all;

/** Never called: every line in it is wrong. */
export async function wrong(): Promise<void> {
  // @ts-expect-error a member of the query is missing
  await parcelTrack({});
  // @ts-expect-error a parameter of another type
  await parcelTrack({ code: "a", limit: "x" });
  // @ts-expect-error a body without what is required
  await parcelSend({ to: { name: "a" } });
  // @ts-expect-error a member of another type
  await parcelSend({ to: { name: "a" }, weight: "2" });
  // @ts-expect-error a member that is not there
  await parcelSend({ to: { name: "a" }, weight: 2, fragile: true });
  // @ts-expect-error a member that the result does not have
  parcel.price;
  // @ts-expect-error a member of the result of another type
  const price: string = result.price;
  // @ts-expect-error a result that is a list, used as one parcel
  list.code;
  // @ts-expect-error a member that a result shared with others does not have
  latestParcel.price;
  // @ts-expect-error a member that a result that is a definition does not have
  address.price;
  assert.ok(price);
}
