import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../test/gateway-sources.ts";
import { isCallError } from "../../core/errors/errors.ts";
import type { ElicitAnswer, ElicitRequest } from "../../core/operation/caller-side.ts";
import { loadConfigObject } from "../index.ts";
import { CallerLogins, MOST_GRANTS } from "./caller-logins.ts";

const ann = { key: 'other:["ann",null]', subject: "ann" };
const identity = { subject: "ann" };

async function start() {
  const state = mkdtempSync(join(tmpdir(), "waybill-logins-"));
  atEnd(() => rmSync(state, { recursive: true, force: true }));
  const loaded = await loadConfigObject(
    {
      mcpServers: { crm: { url: "https://crm.example/mcp", identity: "caller" } },
      serve: {
        publicUrl: "https://tools.example/",
        auth: { tokens: { ann: { token: "0123456789abcdef" } } },
      },
    },
    { baseDir: state, env: { WAYBILL_STATE_DIR: state, WAYBILL_KEYRING: "off" } },
  );
  const logins = new CallerLogins(loaded);
  const source = logins.sources.get("crm");
  if (source === undefined) throw new Error("There is no source.");
  const asked: ElicitRequest[] = [];
  const answers: ((answer: ElicitAnswer) => void)[] = [];
  const elicit = (request: ElicitRequest): Promise<ElicitAnswer> => {
    asked.push(request);
    return new Promise((resolve) => answers.push(resolve));
  };
  return { logins, source, asked, answers, elicit, state };
}

describe("what callers have of their own", () => {
  it("is asked for once, however many calls need it, and given to all of them", async () => {
    const { logins, source, asked, elicit } = await start();
    const needed = Array.from({ length: 20 }, () => logins.need(source, { identity, elicit }));
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]).toMatchObject({
      mode: "url",
      url: expect.stringMatching(/^https:\/\/tools\.example\/login\/[\w-]{22}$/),
    });
    // They may have been there before their client says so.
    await logins.keep(source, ann, { token: "t" });
    const grants = await Promise.all(needed);
    expect(new Set(grants.map(({ id }) => id)).size).toBe(1);
    expect(asked).toHaveLength(1);
    expect(logins.nameOf("crm", identity)).toBe(JSON.stringify([ann.key, grants[0]?.id]));
    expect(logins.nameOf("crm", { subject: "bob" })).toBeNull();
    expect(logins.nameOf("other", identity)).toBeUndefined();
  });

  it("is not given where they will not: all of them are told the link, and the next call asks again", async () => {
    const { logins, source, asked, answers, elicit } = await start();
    const needed = Array.from({ length: 3 }, () => logins.need(source, { identity, elicit }));
    await expect.poll(() => answers.length).toBe(1);
    answers[0]?.({ action: "decline" });
    for (const outcome of await Promise.allSettled(needed)) {
      const reason: unknown = outcome.status === "rejected" && outcome.reason;
      expect(isCallError(reason) && reason.code).toBe("UNAUTHENTICATED");
      expect(reason).toMatchObject({ details: { login: { url: asked[0]?.mode === "url" && asked[0].url } } });
    }
    void logins.need(source, { identity, elicit }).catch(() => {});
    await expect.poll(() => asked.length).toBe(2);
    answers[1]?.({ action: "cancel" });
  });

  it("is waited for no longer than the call, and then by whoever needs it still", async () => {
    const { logins, source, asked, elicit } = await start();
    const stop = new AbortController();
    const first = logins.need(source, { identity, elicit, signal: stop.signal });
    await expect.poll(() => asked.length).toBe(1);
    const second = logins.need(source, { identity, elicit });
    stop.abort(new Error("The caller left."));
    await expect(first).rejects.toThrow("The caller left.");
    await expect.poll(() => asked.length).toBe(2);
    await logins.keep(source, ann, { token: "t" });
    expect(await second).toMatchObject({ owner: ann });
  });

  it("is nothing that somebody else's file can stand for", async () => {
    const { logins, source } = await start();
    await logins.keep(source, { key: "other:bob", subject: "bob" }, { token: "t" });
    const bobs = logins.storeOf(source, "other:bob");
    await logins.storeOf(source, ann.key).save((await bobs.load()) ?? {});
    expect(await logins.heldBy(source, ann)).toBeUndefined();
  });

  it("is forgotten where it is the grant that is meant, and no newer one", async () => {
    const { logins, source } = await start();
    await logins.keep(source, ann, { token: "1" });
    const old = await logins.heldBy(source, ann);
    await logins.keep(source, ann, { token: "2" });
    if (old !== undefined) await logins.drop(source, old);
    expect((await logins.heldBy(source, ann))?.stored).toMatchObject({ token: "2" });
  });

  it("names no results any more once it has ended, whenever it was looked up last", async () => {
    const { logins, source } = await start();
    for (let turns = 0; turns < 30; turns++) {
      await logins.keep(source, ann, { token: "t" });
      const ending = logins.end(source, ann);
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      await Promise.all([ending, logins.held(source, identity)]);
      expect(logins.nameOf("crm", identity)).toBeNull();
    }
  });

  it("is kept for so many callers of a source, and not for one more", async () => {
    const { logins, source, state } = await start();
    mkdirSync(join(state, "logins"), { recursive: true, mode: 0o700 });
    for (let n = 1; n < MOST_GRANTS; n++)
      writeFileSync(join(state, "logins", `caller-of-crm.${n}.login`), "");
    await logins.keep(source, ann, { token: "t" });
    await expect(logins.keep(source, { key: "k", subject: "bob" }, {})).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
    });
    await logins.keep(source, ann, { token: "again" });
  });
});
