import {
  chmodSync,
  chownSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createEncryptedStore, type EncryptedStore } from "./encrypted-store.ts";

let folder: string;
let store: EncryptedStore;
const env = { WAYBILL_KEYRING: "off" };
const open = (...id: string[]): EncryptedStore => createEncryptedStore({ folder, id, env });
const CANARY = "canary-token-5b7c";

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "waybill-store-")), "logins");
  store = open("a", "https://a.example");
});
afterEach(() => rmSync(dirname(folder), { recursive: true, force: true }));

it.runIf(process.platform === "linux")("leave a key alone that the keyring does not tell", async () => {
  const bin = mkdtempSync(join(tmpdir(), "waybill-keyring-"));
  onTestFinished(() => rmSync(bin, { recursive: true, force: true }));
  // It is locked when it is asked, and open when it is told to keep something.
  const script = `#!/bin/sh
cd "${bin}"
case "$1" in
  store) cat > secret ;;
  lookup) [ -f locked ] && kill -9 $$; [ -f secret ] && cat secret ;;
esac`;
  writeFileSync(join(bin, "secret-tool"), script, { mode: 0o755 });
  const unlocked = { PATH: `${bin}:${process.env["PATH"]}` };
  await createEncryptedStore({ folder, id: ["a"], env: unlocked }).save({ token: "one" });
  writeFileSync(join(bin, "locked"), "");
  await createEncryptedStore({ folder, id: ["b"], env: unlocked }).save({ token: "two" });
  rmSync(join(bin, "locked"));
  expect(await createEncryptedStore({ folder, id: ["a"], env: unlocked }).load()).toEqual({ token: "one" });
  expect(await createEncryptedStore({ folder, id: ["b"], env: unlocked }).load()).toEqual({ token: "two" });
});

describe("tokens in a file", () => {
  it("are there again for another process, encrypted, for their owner alone", async () => {
    expect(await store.load()).toBeUndefined();
    await store.save({ token: CANARY });
    expect(await open("a", "https://a.example").load()).toEqual({ token: CANARY });
    for (const name of readdirSync(folder)) {
      expect(readFileSync(join(folder, name), "utf8")).not.toContain(CANARY);
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    }
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder).sort()).toEqual([expect.stringMatching(/^a\.[\da-f]{32}\.login$/), "key"]);
  });

  it("are never written the same way twice", async () => {
    await store.save({ token: CANARY });
    const first = readFileSync(store.path, "utf8");
    await store.save({ token: CANARY });
    expect(readFileSync(store.path, "utf8")).not.toBe(first);
  });

  it("are heard of when another process changes them", async () => {
    await store.save({ token: "one" });
    expect(await store.load()).toEqual({ token: "one" });
    await open("a", "https://a.example").save({ token: "two" });
    expect(await store.load()).toEqual({ token: "two" });
    await open("a", "https://a.example").remove();
    expect(await store.load()).toBeUndefined();
  });

  it("belong to one source at one address: under another name they cannot be read", async () => {
    await store.save({ token: CANARY });
    const other = open("a", "https://evil.example");
    expect(other.path).not.toBe(store.path);
    expect(await other.load()).toBeUndefined();
    cpSync(store.path, other.path);
    expect(await other.load()).toBeUndefined();
    expect((await other.fault())?.reason).toBe("other-key");
  });

  it.each([
    ["cut off", (text: string) => text.slice(0, text.length / 2), "damaged"],
    ["no JSON", () => "nothing", "damaged"],
    ["empty", () => "", "damaged"],
    ["of an unknown version", (text: string) => text.replace('"v":1', '"v":2'), "damaged"],
    [
      "changed",
      (text: string) => text.replace(/(?<="data":")./, (c) => (c === "_" ? "-" : "_")),
      "other-key",
    ],
  ])("count as none when they are %s, and can be written again", async (_, change, reason) => {
    await store.save({ token: CANARY });
    writeFileSync(store.path, change(readFileSync(store.path, "utf8")));
    expect(await store.load()).toBeUndefined();
    expect((await store.fault())?.reason).toBe(reason);
    expect((await store.fault())?.message).not.toContain(CANARY);
    await store.save({ token: "new" });
    expect(await store.load()).toEqual({ token: "new" });
    expect(await store.fault()).toBeUndefined();
  });

  it("count as none with another key, and without the key", async () => {
    await store.save({ token: CANARY });
    writeFileSync(join(folder, "key"), `${Buffer.alloc(32, 7).toString("base64url")}\n`, { mode: 0o600 });
    expect(await open("a", "https://a.example").load()).toBeUndefined();
    expect((await open("a", "https://a.example").fault())?.reason).toBe("other-key");
    rmSync(join(folder, "key"));
    expect((await open("a", "https://a.example").fault())?.reason).toBe("other-key");
  });

  it("are not read, and the key not used, where others may read them", async () => {
    await store.save({ token: CANARY });
    chmodSync(store.path, 0o644);
    expect(await store.load()).toBeUndefined();
    expect((await store.fault())?.reason).toBe("foreign");
    chmodSync(store.path, 0o600);
    chmodSync(join(folder, "key"), 0o640);
    expect((await open("a", "https://a.example").fault())?.reason).toBe("foreign");
    await expect(open("b").save({})).rejects.toMatchObject({ reason: "foreign" });
  });

  it.runIf(process.getuid?.() === 0)("are not read where they belong to another user", async () => {
    await store.save({ token: CANARY });
    chownSync(store.path, 12_345, 12_345);
    expect(await store.load()).toBeUndefined();
    expect((await store.fault())?.reason).toBe("foreign");
  });

  it("are not written into a folder that others may write into", async () => {
    await store.save({ token: CANARY });
    chmodSync(folder, 0o777);
    await expect(store.save({ token: "two" })).rejects.toMatchObject({ reason: "foreign" });
  });

  it("are no larger than 1 MiB", async () => {
    const around = async (characters: number) => await store.save({ token: "x".repeat(characters) });
    await around(786_000);
    const over = 1_048_576 - statSync(store.path).size;
    // Base64 writes three bytes as four.
    await around(786_000 + Math.floor((over * 3) / 4));
    expect(statSync(store.path).size).toBeLessThanOrEqual(1_048_576);
    await expect(around(786_000 + Math.floor((over * 3) / 4) + 3)).rejects.toThrow("1048576 bytes");
    expect(JSON.stringify(await store.load())).toContain("xxx");
  });

  it("are one key for all that begin at once", async () => {
    const stores = Array.from({ length: 8 }, (_, at) => open(`s${at}`));
    await Promise.all(stores.map((each, at) => each.save({ at })));
    const read = await Promise.all(stores.map((_, at) => open(`s${at}`).load()));
    expect(read).toEqual(stores.map((_, at) => ({ at })));
  });
});
