import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { describeStateStore } from "../../../test/state-store-contract.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { StateLog } from "./state-log.ts";
import type { StateStore } from "./state-store.ts";

/** A clock that tests move. */
const createClock = () => {
  let ahead = 0;
  return {
    now: () => Date.now() + ahead,
    advance: (ms: number): void => {
      ahead += ms;
    },
  };
};

describeStateStore("memory", async () => {
  const { now, advance } = createClock();
  return { store: createLocalStateStore({ now }), advance };
});

describe("in files", () => {
  const { now, advance } = createClock();
  let folder: string;
  let store: StateStore;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-state-"));
    store = createLocalStateStore({ now, log: await StateLog.open(folder, { now, onFault: () => {} }) });
  });
  afterAll(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  describeStateStore("files", async () => ({ store, advance }));
});

const WIDE = { records: 1e6, bytes: 1e9, ownRecords: 1e6, ownBytes: 1e9 };
const name = (key: string) => ({ collection: "keys", owner: "ann", key });

describe("a store in files", () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
  });
  const makeFolder = async (): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-state-"));
    folders.push(folder);
    return folder;
  };
  const open = async (folder: string, faults: string[] = []): Promise<StateStore> => {
    const onFault = (fault: string): void => void faults.push(fault);
    return createLocalStateStore({ log: await StateLog.open(folder, { now: Date.now, onFault }), onFault });
  };
  const put = (store: StateStore, key: string, value: string) =>
    store.create(name(key), Buffer.from(value), { expiresAt: store.now() + 60_000, bounds: WIDE });
  const read = async (store: StateStore, key: string) =>
    Buffer.from((await store.get(name(key)))?.value ?? []).toString();

  it("holds after a restart what was acknowledged before, deletions included", async () => {
    const folder = await makeFolder();
    const first = await open(folder);
    await Promise.all(["a", "b", "c"].map((key) => put(first, key, `value of ${key}`)));
    const revision = (await first.get(name("b")))?.revision ?? 0;
    await first.delete(name("b"), revision);
    await first.close();
    const second = await open(folder);
    expect([await read(second, "a"), await read(second, "b"), await read(second, "c")]).toEqual([
      "value of a",
      "",
      "value of c",
    ]);
    expect((await put(second, "b", "again")).state).toBe("created");
    expect((await second.get(name("b")))?.revision).toBeGreaterThan(revision);
    await second.close();
  });

  it("lists after a restart what was listed before, and reads records that an earlier version wrote", async () => {
    const folder = await makeFolder();
    const { crc32 } = await import("node:zlib");
    const fields = { v: 1, c: "keys", o: "ann", k: "old", r: 3, e: Date.now() + 60_000, b: 1 };
    const old = JSON.stringify({ ...fields, d: Buffer.from("1").toString("base64") });
    await writeFile(join(folder, "state.log"), `${crc32(old).toString(16).padStart(8, "0")} ${old}\n`);
    const first = await open(folder);
    const write = { expiresAt: first.now() + 60_000, bounds: WIDE, listed: true };
    await first.create(name("new"), Buffer.from("2"), write);
    await put(first, "hidden", "3");
    await first.close();
    const second = await open(folder);
    expect([await read(second, "old"), await read(second, "new"), await read(second, "hidden")]).toEqual([
      "1",
      "2",
      "3",
    ]);
    expect(await second.list("keys", "ann", { limit: 10 })).toEqual(["new"]);
    await second.close();
  });

  it("cuts off a torn last line wherever it was cut, tells of it, and goes on behind it", async () => {
    const folder = await makeFolder();
    const first = await open(folder);
    await put(first, "a", "1");
    await put(first, "b", "2");
    await first.close();
    const path = join(folder, "state.log");
    const whole = await readFile(path);
    const second = whole.indexOf(10) + 1;
    for (let cut = second; cut < whole.length; cut++) {
      await writeFile(path, whole.subarray(0, cut));
      const faults: string[] = [];
      const store = await open(folder, faults);
      expect([await read(store, "a"), await read(store, "b")]).toEqual(["1", ""]);
      expect(faults).toEqual(cut === second ? [] : ["torn"]);
      expect((await put(store, "b", "3")).state).toBe("created");
      await store.close();
      const again = await open(folder);
      expect([await read(again, "a"), await read(again, "b")]).toEqual(["1", "3"]);
      await again.close();
    }
  });

  it("leaves a damaged line in the middle out and tells of it", async () => {
    const folder = await makeFolder();
    const first = await open(folder);
    for (const key of ["a", "b", "c"]) await put(first, key, key);
    await first.close();
    const path = join(folder, "state.log");
    const lines = (await readFile(path, "utf8")).split("\n");
    lines[1] = `${lines[1]?.slice(0, -4)}AAAA`;
    await writeFile(path, lines.join("\n"));
    const faults: string[] = [];
    const store = await open(folder, faults);
    expect([faults, await read(store, "a"), await read(store, "b"), await read(store, "c")]).toEqual([
      ["damaged"],
      "a",
      "",
      "c",
    ]);
    await store.close();
  });

  it("puts a log aside of which it can read nothing, tells of it, and begins anew", async () => {
    const folder = await makeFolder();
    const first = await open(folder);
    await put(first, "a", "1");
    await first.close();
    const path = join(folder, "state.log");
    const whole = (await readFile(path, "utf8")).replaceAll("\n", "\r\n");
    await writeFile(path, whole);
    const faults: string[] = [];
    const store = await open(folder, faults);
    expect([faults, await read(store, "a")]).toEqual([["damaged"], ""]);
    expect((await put(store, "a", "2")).state).toBe("created");
    await store.close();
    expect(await readFile(`${path}.damaged`, "utf8")).toBe(whole);
    const again = await open(folder);
    expect(await read(again, "a")).toBe("2");
    await again.close();
  });

  it("leaves records of another version alone, says so, and keeps them when the log is written anew", async () => {
    const folder = await makeFolder();
    const { crc32 } = await import("node:zlib");
    const foreign = JSON.stringify({ v: 2, c: "keys", o: "ann", k: "new", r: 7, what: "is not known here" });
    const line = `${crc32(foreign).toString(16).padStart(8, "0")} ${foreign}\n`;
    await writeFile(join(folder, "state.log"), line);
    const faults: string[] = [];
    const store = await open(folder, faults);
    await expect(store.get(name("new"))).rejects.toThrow(/has version 2, and this gateway reads version 1/);
    await expect(put(store, "new", "x")).rejects.toMatchObject({ fault: "version" });
    expect(faults).toEqual(["version", "version"]);
    for (let round = 0; round < 3; round++) {
      const big = await put(store, "big", "x".repeat(2_000_000));
      if (big.state === "created") await store.delete(name("big"), big.revision);
    }
    await store.close();
    const text = await readFile(join(folder, "state.log"), "utf8");
    expect(text.length).toBeLessThan(6_000_000);
    expect(text).toContain(foreign);
  });

  it("is written anew when most of it is out of date, and loses nothing that changes meanwhile", async () => {
    const folder = await makeFolder();
    const store = await open(folder);
    const write = async (key: string): Promise<void> => {
      let created = await put(store, key, "0".repeat(10_000));
      for (let round = 1; round <= 200 && created.state === "created"; round++) {
        const value = Buffer.from(String(round).padEnd(10_000, "."));
        const write = { expiresAt: store.now() + 60_000, bounds: WIDE };
        const updated = await store.update(name(key), created.revision, value, write);
        if (updated.state !== "updated") throw new Error(updated.state);
        created = { state: "created", revision: updated.revision };
      }
    };
    await Promise.all(["a", "b", "c", "d", "e"].map(write));
    await store.close();
    expect((await readFile(join(folder, "state.log"))).length).toBeLessThan(9_000_000);
    const again = await open(folder);
    for (const key of ["a", "b", "c", "d", "e"]) expect((await read(again, key)).slice(0, 4)).toBe("200.");
    await again.close();
  });

  it("is for one process: another one is refused while it runs, and takes over what one that is gone has left", async () => {
    const folder = await makeFolder();
    const first = await open(folder);
    await expect(open(folder)).rejects.toThrow(`is in use by the process ${process.pid}`);
    await first.close();
    await writeFile(join(folder, "state.lock"), "4194399 1");
    const second = await open(folder);
    await second.close();
    await writeFile(join(folder, "state.lock"), `${process.pid} 1`);
    await (await open(folder)).close();
  });
});
