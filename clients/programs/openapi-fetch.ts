import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "../generated/openapi-typescript.ts";

const client = createClient<paths>({ baseUrl: process.argv[2] as string });

const tracked = await client.GET("/api/parcel/track", { params: { query: { code: "A-7" } } });
const state: "new" | "sent" | undefined = tracked.data?.state;
assert.deepEqual([tracked.data?.to.name, state], ["Ada", "new"]);
const problem: string | undefined = tracked.error?.title;
assert.equal(problem, undefined);

const sent = await client.POST("/api/parcel/send", { body: { to: { name: "Bob" }, weight: 2 } });
assert.equal(sent.data?.price.toFixed(1), "6.0");

const all = await client.GET("/api/parcel/list/all");
assert.deepEqual(
  all.data?.map(({ code }) => code),
  ["A-1", "A-2"],
);

const latest = await client.GET("/api/parcel/latest");
const sender = await client.GET("/api/parcel/sender");
assert.deepEqual([latest.data?.to.name, sender.data?.street.length], ["Ada", 13]);

/** Never called: every line in it is wrong. */
export async function wrong(): Promise<void> {
  // @ts-expect-error a member of the query is missing
  await client.GET("/api/parcel/track", { params: { query: {} } });
  // @ts-expect-error a parameter of another type
  await client.GET("/api/parcel/track", { params: { query: { code: "a", limit: "x" } } });
  // @ts-expect-error a body without what is required
  await client.POST("/api/parcel/send", { body: { to: { name: "a" } } });
  // @ts-expect-error a member of another type
  await client.POST("/api/parcel/send", { body: { to: { name: "a" }, weight: "2" } });
  // @ts-expect-error a member of a member that has another type
  await client.POST("/api/parcel/send", { body: { to: { name: 1 }, weight: 2 } });
  // @ts-expect-error no body at all
  await client.POST("/api/parcel/send");
  // @ts-expect-error a path that is not there
  await client.GET("/api/parcel/trace");
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
