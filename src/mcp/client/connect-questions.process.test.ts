import { describe, expect, it } from "vitest";
import { callScripted, textOf, withScripted } from "../../../test/mcp-servers/scripted-connection.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";

const ERAS = ["legacy", "modern"] as const;

describe("questions of a server", () => {
  const caller: CallerSide = {
    elicit: async ({ message }) => ({ action: "accept", content: { heard: message } }),
    sample: async () => ({ role: "assistant", content: { type: "text", text: "hm" }, model: "m" }),
  };
  const elicit = { method: "elicitation/create" };

  it("Mcp: go to the caller of the one call in flight, in either revision", async () => {
    await withScripted("legacy", {}, async ({ connection }) => {
      expect(textOf(await callScripted(connection, "asks", elicit, { caller }))).toEqual({
        action: "accept",
        content: { heard: "Sure?" },
      });
    });
    await withScripted("modern", {}, async ({ connection }) => {
      expect(textOf(await callScripted(connection, "asks", elicit, { caller }))).toEqual({
        got: { one: { action: "accept", content: { heard: "Sure?" } } },
        state: "s1",
      });
    });
  });

  it("Mcp: are answered with the roots of the options without asking anybody", async () => {
    const roots = [{ uri: "file:///work", name: "work" }];
    await withScripted("legacy", { roots }, async ({ connection }) => {
      expect(textOf(await callScripted(connection, "asks", { method: "roots/list" }))).toEqual({ roots });
    });
    await withScripted("modern", { roots }, async ({ connection }) => {
      const answer = textOf(await callScripted(connection, "asks", { method: "roots/list" }));
      expect(answer).toMatchObject({ got: { one: { roots } } });
    });
  });

  it("Mcp: are refused when calls of two callers are in flight, and answered when both are of one", async () => {
    await withScripted("legacy", {}, async ({ connection }) => {
      const other: CallerSide = { ...caller };
      const stop = new AbortController();
      const busy = callScripted(connection, "sleeps", {}, { caller: other, signal: stop.signal }).catch(
        () => {},
      );
      expect(textOf(await callScripted(connection, "asks", elicit, { caller }))).toMatchObject({
        code: -1,
        message: expect.stringContaining("whose question"),
      });
      expect(textOf(await callScripted(connection, "asks", elicit, { caller: other }))).toMatchObject({
        action: "accept",
      });
      stop.abort();
      await busy;
    });
  });

  it("Mcp: are method-not-found where nobody can be asked, and not declined in anybody's name", async () => {
    await withScripted("legacy", {}, async ({ connection }) => {
      expect(textOf(await callScripted(connection, "asks", elicit, {}))).toMatchObject({ code: -32601 });
    });
    await withScripted("modern", {}, async ({ connection }) => {
      await expect(callScripted(connection, "asks", elicit, {})).rejects.toMatchObject({
        code: "EXECUTION_ERROR",
      });
      const meta = textOf(await callScripted(connection, "meta", {}, {})) as Record<string, unknown>;
      expect(meta["io.modelcontextprotocol/clientCapabilities"]).toEqual({
        roots: { listChanged: true },
        extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } },
      });
      const asked = textOf(await callScripted(connection, "meta", {}, { caller })) as Record<string, unknown>;
      expect(asked["io.modelcontextprotocol/clientCapabilities"]).toHaveProperty("elicitation.url");
    });
  });

  it("Mcp: that are malformed never reach a caller", async () => {
    const heard: unknown[] = [];
    const listening: CallerSide = {
      elicit: async (request) => {
        heard.push(request);
        return { action: "accept" };
      },
    };
    await withScripted("legacy", {}, async ({ connection }) => {
      for (const params of [{}, { message: 1 }, { mode: "url", message: "m", url: "javascript:alert(1)" }]) {
        const answer = await callScripted(connection, "asks", { ...elicit, params }, { caller: listening });
        expect(textOf(answer)).toMatchObject({ code: -32602 });
      }
    });
    expect(heard).toEqual([]);
  });

  it("Mcp: end with the deadline of the call, whoever is asked never answering", async () => {
    const silent: CallerSide = { elicit: () => new Promise(() => {}) };
    for (const era of ERAS) {
      await withScripted(era, {}, async ({ connection }) => {
        const call = callScripted(connection, "asks", elicit, { caller: silent, timeoutMs: 100 });
        await expect(call).rejects.toMatchObject({ code: "TIMEOUT" });
      });
    }
  });

  it("Mcp: that were left open with a call hold up no question of the next caller", async () => {
    await withScripted("legacy", {}, async ({ connection }) => {
      const leaving: CallerSide = { elicit: () => new Promise(() => {}) };
      const left = callScripted(connection, "asks", elicit, { caller: leaving, timeoutMs: 100 });
      await expect(left).rejects.toMatchObject({ code: "TIMEOUT" });
      const next = async () => textOf(await callScripted(connection, "asks", elicit, { caller }));
      await expect.poll(next, { timeout: 20_000 }).toMatchObject({ action: "accept" });
    });
  });

  it("Mcp: stop after as many rounds as allowed, and an unknown kind of result is an error", async () => {
    await withScripted("modern", { limits: { rounds: 2 } }, async ({ connection }) => {
      await expect(callScripted(connection, "asks-for-ever")).rejects.toMatchObject({
        code: "EXECUTION_ERROR",
        message: expect.stringContaining("2 rounds"),
      });
      await expect(callScripted(connection, "is-new")).rejects.toMatchObject({
        details: { resultType: "task" },
      });
    });
  });
});
