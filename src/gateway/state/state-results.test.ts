import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createLocalStateStore } from "./local-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import { StateLog } from "./state-log.ts";
import { STATE_RESULTS, StateResults } from "./state-results.ts";
import { StateError, type StateStore } from "./state-store.ts";

const entry = (text: string, owner = "ann") => ({
  text,
  mimeType: "text/plain",
  owner,
  binding: `of ${owner}`,
});

/** Results of two replicas on one store. */
const open = (store: StateStore = createLocalStateStore()) => {
  let isLost = false;
  let alone = 0;
  const replica = (name: string) => {
    const lease = new ReplicaLease(store, { replica: name });
    const reach = async () => {
      if (isLost) throw new StateError("unreachable", "Planted.");
      return { store, lease };
    };
    return new StateResults({ access: { reach }, onAlone: () => void alone++ });
  };
  return {
    one: replica("one"),
    two: replica("two"),
    lose: () => {
      isLost = true;
    },
    alone: () => alone,
  };
};

it("texts and bytes of every kind are read at another replica as they were put", async () => {
  const { one, two, alone } = open();
  const texts = ["", "plain", "ä€😀", "half \ud83d", "\udc00", "line\nline", "x".repeat(100_000)];
  for (const text of texts) {
    const { uri } = await one.put(entry(text));
    expect(await two.read(uri, {}, { owner: "ann" })).toEqual(await one.read(uri, {}, { owner: "ann" }));
    expect((await two.read(uri, {}, { owner: "ann" }))?.text).toBe(text);
  }
  const bytes = Buffer.from("seven b").toString("base64");
  const { uri } = await one.put({ ...entry(bytes), mimeType: "image/png", encoding: "base64" });
  const range = { offset: 5, length: 2 };
  expect(await two.read(uri, range, { owner: "ann" })).toEqual(await one.read(uri, range));
  await expect(two.read(uri, { offset: 99 }, { owner: "ann" })).rejects.toThrow(RangeError);
  expect(alone()).toBe(0);
});

it("another owner finds nothing in the store, and neither does who guesses", async () => {
  const { one, two } = open();
  const { uri } = await one.put(entry("secret"));
  for (const reader of [undefined, {}, { owner: "bob" }, { owner: "" }])
    expect(await two.read(uri, {}, reader)).toBeUndefined();
  expect(
    await two.read(`${uri.slice(0, -1)}${uri.endsWith("0") ? "1" : "0"}`, {}, { owner: "ann" }),
  ).toBeUndefined();
  expect(await two.read("file:///etc/passwd", {}, { owner: "ann" })).toBeUndefined();
  expect((await two.read(uri, {}, { owner: "ann" }))?.binding).toBe("of ann");
});

it("a caller has as many as its bound, and leaves room for others; what is not taken stays at its replica", async () => {
  const { one, two, alone } = open();
  const { ownRecords } = STATE_RESULTS.bounds;
  const uris: string[] = [];
  for (let count = 0; count <= ownRecords; count++) uris.push((await one.put(entry(`${count}`))).uri);
  expect(alone()).toBe(1);
  const last = uris[ownRecords] ?? "";
  expect((await one.read(last, {}, { owner: "ann" }))?.text).toBe(`${ownRecords}`);
  expect(await two.read(last, {}, { owner: "ann" })).toBeUndefined();
  expect((await two.read(uris[ownRecords - 1] ?? "", {}, { owner: "ann" }))?.text).toBe(`${ownRecords - 1}`);
  const { uri } = await one.put(entry("of bob", "bob"));
  expect((await two.read(uri, {}, { owner: "bob" }))?.text).toBe("of bob");
});

it("they are gone at every replica when their time is over", async () => {
  let ahead = 0;
  const { one, two } = open(createLocalStateStore({ now: () => Date.now() + ahead }));
  const { uri } = await one.put(entry("text"));
  expect((await two.read(uri, {}, { owner: "ann" }))?.text).toBe("text");
  ahead = STATE_RESULTS.keepMs;
  expect(await two.read(uri, {}, { owner: "ann" })).toBeUndefined();
});

it("what another replica may keep is not said to be gone where the store cannot be asked", async () => {
  const { one, two, lose, alone } = open();
  const before = await one.put(entry("before"));
  lose();
  const after = await one.put(entry("after"));
  expect(alone()).toBe(1);
  expect((await one.read(after.uri))?.text).toBe("after");
  for (const { uri } of [before, after])
    await expect(two.read(uri, {}, { owner: "ann" })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      retryable: true,
    });
});

it("in files, a link outlives the process that gave it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-results-"));
  const openFiles = async () => {
    const log = await StateLog.open(folder, { now: Date.now, onFault: () => {} });
    return createLocalStateStore({ log });
  };
  const first = await openFiles();
  const { uri } = await open(first).one.put(entry("ä€😀 half \ud83d"));
  await first.close();
  const second = await openFiles();
  expect((await open(second).two.read(uri, {}, { owner: "ann" }))?.text).toBe("ä€😀 half \ud83d");
  expect(await open(second).two.read(uri, {}, { owner: "bob" })).toBeUndefined();
  await second.close();
  await rm(folder, { recursive: true });
});
