import { expect, it } from "vitest";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { ReplicaLease } from "../state/replica-lease.ts";
import { StateError, type StateStore } from "../state/state-store.ts";
import { REPLAYS, StateReplays } from "./state-replays.ts";

let ahead = 0;
const openStore = () => createLocalStateStore({ now: () => Date.now() + ahead });
const join = (store: StateStore | undefined) => {
  const alone: unknown[] = [];
  const lease = store && new ReplicaLease(store, { replica: "aaaaaaaa" });
  const replays = new StateReplays({
    shared: () => (store === undefined || lease === undefined ? undefined : { store, lease }),
    isHarmless: (id) => id === "desk.read",
    onAlone: (cause) => void alone.push(cause),
  });
  return { replays, alone };
};

it("RE-29 gives a call to one of all replicas, for as long as its token is believed", async () => {
  const store = openStore();
  const [one, two] = [join(store), join(store)];
  const claims = await Promise.all(
    Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? one : two).replays.claim("desk.write r1 1 ann")),
  );
  expect(claims.filter((isOurs) => isOurs)).toHaveLength(1);
  expect(await two.replays.claim("desk.write r1 1 ben")).toBe(true);
  expect(await two.replays.claim("desk.write r1 2 ann")).toBe(true);
  ahead += REPLAYS.keepMs - 1_000;
  expect(await two.replays.claim("desk.write r1 1 ann")).toBe(false);
  ahead += 1_001;
  expect(await two.replays.claim("desk.write r1 1 ann")).toBe(true);
  ahead = 0;
});

it("RE-29 asks nobody about calls that do no harm twice, or where there is no store yet", () => {
  expect(join(openStore()).replays.claim("desk.read r1 1 ann")).toBe(true);
  expect(join(undefined).replays.claim("desk.write r1 1 ann")).toBe(true);
});

it("RE-29 remembers as many calls as allowed, and tells of one more, and of a store that is lost", async () => {
  const store = openStore();
  const { replays, alone } = join(store);
  for (let at = 0; at < REPLAYS.calls; at++) await replays.claim(`desk.write r${at} 1 ann`);
  expect(alone).toEqual([]);
  expect([await replays.claim("desk.write more 1 ann"), alone.length]).toEqual([true, 1]);
  store.create = () => Promise.reject(new StateError("unreachable", "gone"));
  expect([await replays.claim("desk.write lost 1 ann"), alone.length]).toEqual([true, 2]);
});
