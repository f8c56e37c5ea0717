import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../../test/mcp-requests.ts";
import { SealingKeys } from "../../mcp/server/sealing-keys.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { LONGEST_KEEP_MS } from "../state/state-store.ts";
import { makeSecret, SharedKey } from "./shared-key.ts";

const NAME = { collection: "sealing", owner: "", key: "sessions" };

describe("the key that replicas share", () => {
  const open: SharedKey[] = [];
  afterEach(() => {
    for (const key of open.splice(0)) key.close();
  });

  let ahead = 0;
  const createStore = () => createLocalStateStore({ now: () => Date.now() + ahead });
  const join = (store: ReturnType<typeof createStore>) => {
    const secret = makeSecret();
    const keys = new SealingKeys(secret);
    const warnings: string[] = [];
    const key = new SharedKey(store, keys, { secret, onWarning: (message) => void warnings.push(message) });
    open.push(key);
    return { keys, key, warnings };
  };

  it("Mcp: is that of whoever was first, for all who begin at the same moment and later", async () => {
    const store = createStore();
    const replicas = Array.from({ length: 5 }, () => join(store));
    const before = replicas.map(({ keys }) => keys.seal("session", "before") as string);
    await Promise.all(replicas.map(({ key }) => key.look()));
    const late = join(store);
    await late.key.look();
    const sealed = replicas[3]?.keys.seal("session", "shared") as string;
    for (const { keys, warnings } of [...replicas, late]) {
      expect([keys.open("session", sealed), warnings]).toEqual(["shared", []]);
    }
    // What a replica has sealed before goes on where it was sealed.
    const own = replicas.map(({ keys }, at) => keys.open("session", before[at] as string));
    expect(own).toEqual(["before", "before", "before", "before", "before"]);
  });

  it("Mcp: stays the same for as long as a replica is there, however long that is", async () => {
    const store = createStore();
    const { keys, key } = join(store);
    await key.look();
    const sealed = keys.seal("session", "shared") as string;
    for (let half = 0; half < 6; half++) {
      ahead += LONGEST_KEEP_MS * 0.6;
      await key.look();
      const other = join(store);
      await other.key.look();
      expect(other.keys.open("session", sealed)).toBe("shared");
    }
    ahead = 0;
  });

  it("Mcp: is stored again by the first who finds the store emptied, and another one is told of", async () => {
    const store = createStore();
    const [one, two] = [join(store), join(store)];
    await one.key.look();
    await two.key.look();
    const sealed = one.keys.seal("session", "shared") as string;
    const wipe = async () => store.delete(NAME, (await store.get(NAME))?.revision ?? 0);
    await wipe();
    await until(() => store.isUp);
    await two.key.look();
    await one.key.look();
    expect([one.warnings, two.warnings]).toEqual([[], []]);
    for (const { key } of [one, two]) key.close();
    await wipe();
    const stranger = join(store);
    await stranger.key.look();
    await one.key.look();
    expect(one.warnings).toEqual([expect.stringContaining("another key of sessions")]);
    const newer = stranger.keys.seal("session", "newer") as string;
    expect([one.keys.open("session", newer), one.keys.open("session", sealed)]).toEqual(["newer", "shared"]);
  });

  it("Mcp: is left as it is where its record cannot be read, and this replica keeps its own", async () => {
    const store = createStore();
    const bounds = { records: 9, bytes: 1e6, ownRecords: 9, ownBytes: 1e6 };
    for (const text of ['{"secret":"short"}', "no json"]) {
      const found = await store.get(NAME);
      if (found !== undefined) await store.delete(NAME, found.revision);
      await store.create(NAME, Buffer.from(text), { expiresAt: store.now() + 60_000, bounds });
      const { keys, key, warnings } = join(store);
      const sealed = keys.seal("session", "own") as string;
      await key.look();
      expect([keys.open("session", sealed), warnings.length]).toEqual(["own", 1]);
      expect(Buffer.from((await store.get(NAME))?.value ?? []).toString()).toBe(text);
      key.close();
    }
  });
});
