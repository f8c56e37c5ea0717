import {
  chmodSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CommandProject, openProject, type ServedProject } from "../../../test/command-project.ts";
import { createMemoryIo } from "../../../test/memory-io.ts";
import { runWaybill } from "../run-waybill.ts";
import { callerToken, gatewayProof, type RunningGateway } from "./running-gateway.ts";

let project: CommandProject;
let served: ServedProject | undefined;
let fake: Server | undefined;

const SHOP = `
globalThis.waybillStarted = (globalThis.waybillStarted ?? 0) + 1;
const shared = { namespace: "shop", version: "1.0.0", description: "Does it." };
export const add = { ...shared, id: "shop.add", name: "add", type: "query", handler: () => "added" };
export const guarded = { ...shared, id: "shop.guarded", name: "guarded", type: "query",
  access: { scopes: { allOf: ["x"] } }, handler: (_, { identity }) => identity.scopes };
`;
const CONFIG = {
  operations: "shop.mjs",
  serve: { port: 0, auth: { tokens: { ann: { token: "a-token-of-some-length-1" } } } },
};

beforeEach(async () => {
  project = openProject({ "shop.mjs": SHOP, "waybill.config.json": CONFIG });
  served = await project.serve();
});
afterEach(async () => {
  await served?.stop();
  served = undefined;
  fake?.close();
  fake = undefined;
  project.remove();
});

const folder = (): string => join(project.folder, "state", "gateways");
const files = (): string[] => readdirSync(folder()).filter((name) => name.endsWith(".json"));
const file = (): string => join(folder(), files()[0] ?? "none");
const written = (): RunningGateway => JSON.parse(readFileSync(file(), "utf8"));

/** Runs a command, and tells whether the gateway that runs was used. */
async function call(...words: string[]) {
  const env = { PATH: process.env["PATH"], WAYBILL_STATE_DIR: join(project.folder, "state") };
  const io = createMemoryIo({ cwd: project.folder, env });
  const code = await runWaybill(io, words.length > 0 ? words : ["call", "shop.add"]);
  await new Promise((resolve) => setImmediate(resolve));
  return { code, out: io.out(), used: io.err().includes("by the gateway that runs for it") };
}

/** Something that listens and answers as told; what it was sent is kept. */
async function listening(answer: (url: string) => string): Promise<{ url: string; heard: string[] }> {
  const heard: string[] = [];
  fake = createServer((request, response) => {
    heard.push(`${request.url} ${JSON.stringify(request.headers)}`);
    response.end(answer(request.url ?? ""));
  });
  await new Promise<void>((done) => fake?.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${(fake.address() as AddressInfo).port}`, heard };
}

describe("a gateway that runs for the config", () => {
  it("is used by list, describe and call, says so, and gives what its user may do", async () => {
    const { waybillStarted } = globalThis as { waybillStarted?: number };
    expect(await call("call", "shop.add")).toEqual({ code: 0, out: '"added"\n', used: true });
    expect(await call("call", "shop.guarded")).toEqual({ code: 0, out: '["x"]\n', used: true });
    const list = await call("list");
    expect([list.used, list.out]).toEqual([true, expect.stringMatching(/shop\.guarded +query +local /)]);
    expect((await call("describe", "shop.add")).used).toBe(true);
    expect(await call("call", "shop.add", "--idempotency-key", "k")).toMatchObject({ code: 0, used: true });
    const { sources } = JSON.parse((await call("list", "--sources", "--json")).out);
    expect(sources).toMatchObject([{ name: "local", target: expect.stringContaining("shop.mjs") }]);
    expect((globalThis as { waybillStarted?: number }).waybillStarted).toBe(waybillStarted);
    expect(await call("call", "shop.add", "--no-gateway")).toEqual({
      code: 0,
      out: '"added"\n',
      used: false,
    });
  });

  it("refuses a source that it has not, in every command", async () => {
    const env = { WAYBILL_TOKEN: "a-token-of-some-length-1" };
    const commands = [
      ["list"],
      ["call", "shop.add"],
      ["describe", "shop.add"],
      ["list", "--url", served?.url ?? ""],
    ];
    for (const words of commands) {
      const { code, err } = await project.run([...words, "--source", "lokal"], { env });
      expect([code, err]).toEqual([
        2,
        expect.stringContaining('There is no source "lokal"; did you mean "local"?'),
      ]);
    }
    const { err } = await project.run(["list", "--source", "zzz"]);
    expect(err).toContain('There is no source "zzz"; there are local.');
    expect(await call("list", "--source", "local")).toMatchObject({ code: 0, used: true });
  });

  it("is written down for its user alone, and not any more once it has ended", async () => {
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(files()).toHaveLength(1);
    await served?.stop();
    served = undefined;
    expect(files()).toEqual([]);
    expect(await call()).toEqual({ code: 0, out: '"added"\n', used: false });
  });

  it("is not used for a config that says something else by now, and keeps its file", async () => {
    project.write({ "waybill.config.json": { ...CONFIG, name: "other" }, "state/.keep": "" });
    const { digest } = written();
    const { used, code } = await call();
    // It may have taken the change over in the meantime.
    if (digest === written().digest) expect({ used, code }).toEqual({ used: false, code: 0 });
    await expect.poll(async () => (await call()).used, { timeout: 20_000 }).toBe(true);
    expect(written().digest).not.toBe(digest);
  });

  it("answers nobody without its secret, and no web page at all", async () => {
    const { url, secret } = written();
    const status = async (path: string, headers: Record<string, string>) =>
      (await fetch(url + path, { headers })).status;
    const token = callerToken({ url, secret });
    expect(await status("/operations", { authorization: `Bearer ${token}` })).toBe(200);
    expect(await status("/operations", {})).toBe(401);
    expect(await status("/operations", { authorization: `Bearer ${secret}` })).toBe(401);
    expect(await status("/operations", { authorization: "Bearer a-token-of-some-length-1" })).toBe(401);
    const other = callerToken({ url: "http://127.0.0.1:1", secret });
    expect(await status("/operations", { authorization: `Bearer ${other}` })).toBe(401);
    const nonce = "0".repeat(64);
    const proof = gatewayProof(written(), nonce);
    expect(await status("/operations", { authorization: `Bearer ${nonce}.${proof}` })).toBe(401);
    for (const origin of ["https://evil.example", "http://localhost:3000", "null"]) {
      expect(await status(`/proof?nonce=${nonce}`, { origin })).toBe(403);
      expect(await status("/operations", { origin, authorization: `Bearer ${token}` })).toBe(403);
    }
    expect(await status("/proof?nonce=short", {})).toBe(400);
    expect(await status("/docs", {})).toBe(401);
  });
});

describe("a file that says where a gateway is", () => {
  const isIgnored = async (): Promise<void> =>
    expect(await call()).toEqual({ code: 0, out: '"added"\n', used: false });
  const forge = (change: Partial<Record<keyof RunningGateway, unknown>>): void =>
    writeFileSync(file(), JSON.stringify({ ...written(), ...change }));

  it("is ignored where others could have read or written it", async () => {
    for (const mode of [0o640, 0o604, 0o660, 0o666]) {
      const text = readFileSync(file());
      const path = file();
      chmodSync(path, mode);
      await isIgnored();
      writeFileSync(path, text, { mode: 0o600 });
      chmodSync(path, 0o600);
    }
    chmodSync(folder(), 0o755);
    await isIgnored();
    chmodSync(folder(), 0o700);
    expect((await call()).used).toBe(true);
  });

  it("is ignored where it is a link of either kind", async () => {
    const path = file();
    renameSync(path, join(project.folder, "elsewhere"));
    symlinkSync(join(project.folder, "elsewhere"), path);
    await isIgnored();
    linkSync(join(project.folder, "elsewhere"), path);
    await isIgnored();
  });

  it("is ignored where the folder is a link", async () => {
    renameSync(folder(), join(project.folder, "moved"));
    symlinkSync(join(project.folder, "moved"), folder());
    await isIgnored();
  });

  it.each<[string, Partial<Record<keyof RunningGateway, unknown>>]>([
    ["a process that is gone", { pid: 2 ** 22 + 1 }],
    ["no process", { pid: -1 }],
    ["an address elsewhere", { url: "http://192.0.2.1:80" }],
    ["a name", { url: "http://localhost:80" }],
    ["a port that is none", { url: "http://127.0.0.1:99999" }],
    ["an address with a path", { url: "http://127.0.0.1:80/x" }],
    ["another secret", { secret: "0".repeat(64) }],
    ["no secret", { secret: "" }],
    ["nobody there", { url: "http://127.0.0.1:1" }],
  ])("is ignored and removed where it tells of %s", async (_, change) => {
    forge(change);
    const before = files();
    await isIgnored();
    expect(files()).toEqual(before.slice(1));
  });

  it("is left to its gateway, which may take over another config while it is asked for a proof", async () => {
    const path = file();
    const next = JSON.stringify({ ...written(), digest: "0".repeat(64) });
    const { url, heard } = await listening(() => {
      writeFileSync(`${path}.0123456789ab`, next, { mode: 0o600 });
      renameSync(`${path}.0123456789ab`, path);
      return "the proof of another config";
    });
    forge({ url });
    await isIgnored();
    expect([heard.length, readFileSync(path, "utf8")]).toEqual([1, next]);
  });

  it("is removed half written where its process is gone, and left where it is not", async () => {
    const gone = `${file().replace(/[^.]*\.json$/, "")}${2 ** 22 + 1}.json.0123456789ab`;
    const alive = `${file()}.0123456789ab`;
    for (const path of [gone, alive]) writeFileSync(path, "{", { mode: 0o600 });
    expect((await call()).used).toBe(true);
    expect([existsSync(gone), existsSync(alive)]).toEqual([false, true]);
  });

  it("is used, and stays, while its gateway replaces it", async () => {
    const path = file();
    const text = readFileSync(path);
    let isOver = false;
    const replace = async (): Promise<void> => {
      while (!isOver) {
        await writeFile(`${path}.0123456789ab`, text, { mode: 0o600 });
        await rename(`${path}.0123456789ab`, path);
      }
    };
    const replacing = replace();
    for (let count = 0; count < 40; count++) expect((await call()).used).toBe(true);
    isOver = true;
    await replacing;
  });

  it("is ignored where it is no JSON, too long, or of another config", async () => {
    writeFileSync(file(), "{");
    await isIgnored();
    expect(files()).toEqual([]);
    await served?.stop();
    served = await project.serve();
    writeFileSync(file(), JSON.stringify({ ...written(), more: "x".repeat(4_096) }));
    await isIgnored();
  });

  it("leads to nobody who cannot prove it: they are told neither the secret nor a token nor an input", async () => {
    const real = written();
    // What the real one proved before, over and over.
    const replayed = gatewayProof(real, "0".repeat(64));
    const { url, heard } = await listening((path) => (path.startsWith("/proof") ? replayed : "{}"));
    forge({ url });
    await isIgnored();
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^\/proof\?nonce=[0-9a-f]{64} /);
    expect(heard[0]).not.toContain("authorization");
    expect(heard[0]).not.toContain(real.secret);
  });

  it("leads to nobody who passes the question on to the real gateway", async () => {
    const real = written();
    const asked: Promise<string>[] = [];
    fake = createServer((request, response) => {
      const answer = fetch(real.url + request.url).then((one) => one.text());
      asked.push(answer);
      answer.then((text) => response.end(text));
    });
    await new Promise<void>((done) => fake?.listen(0, "127.0.0.1", done));
    forge({ url: `http://127.0.0.1:${(fake.address() as AddressInfo).port}` });
    await isIgnored();
    expect(await Promise.all(asked)).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  });
});
