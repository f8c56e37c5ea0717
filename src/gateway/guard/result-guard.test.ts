import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { localEnvelope, mcpEnvelope } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { createJudge, JUDGE_LIMITS } from "./judge.ts";
import { checkGuard, GUARD_LIMITS, type GuardPolicy, type Judge, ResultGuard } from "./result-guard.ts";

const TOKEN = `ghp_${"aB3dE5gH7jK9".repeat(3)}`;
const CARD = "4111 1111 1111 1111";

async function guard(data: unknown, policy: GuardPolicy, judge?: Judge) {
  return await new ResultGuard(policy, judge).envelope("shop.order", localEnvelope(data, "shop.order"));
}

describe("a guard", () => {
  it("gives a result in which it finds nothing back as it is", async () => {
    const envelope = localEnvelope({ text: "plain", list: [1, 2] }, "shop.order");
    expect(await new ResultGuard({ credentials: "mask" }).envelope("shop.order", envelope)).toBe(envelope);
  });

  it("marks what it finds by pointer and leaves the data alone", async () => {
    const data = { note: `a ${TOKEN} b ${TOKEN}`, cards: [CARD, "x"] };
    const { data: shown, meta } = await guard(data, { credentials: "mark", cards: "mark" });
    expect(shown).toBe(data);
    expect(meta.waybill?.findings).toEqual([
      { kind: "credentials", rule: "github-token", pointer: "/data/note", count: 2 },
      { kind: "cards", rule: "payment-card", pointer: "/data/cards/0", count: 1 },
    ]);
    expect(JSON.stringify(meta)).not.toContain(TOKEN.slice(4, 12));
  });

  it("masks no more than what it found", async () => {
    const data = {
      note: `a ${TOKEN} b`,
      n: 4_111_111_111_111_111,
      plain: "a\u202eb",
      apiKey: "aB3dE5gH7jK9zz",
      other: "kept",
    };
    const { data: shown, meta } = await guard(data, { credentials: "mask", cards: "mask", hidden: "mask" });
    expect(shown).toEqual({ note: "a *** b", n: "***", plain: "ab", apiKey: "***", other: "kept" });
    expect(meta.waybill?.findings?.map(({ rule, masked }) => [rule, masked])).toEqual([
      ["github-token", true],
      ["payment-card", true],
      ["bidi-characters", true],
      ["named-secret", true],
    ]);
    expect(data.note).toContain(TOKEN);
  });

  it("never shows in a pointer what it found in a name", async () => {
    const { meta } = await guard(
      { [`k ${TOKEN}`]: { [CARD]: CARD } },
      { credentials: "mark", cards: "mark" },
    );
    expect(JSON.stringify(meta.waybill)).not.toMatch(/ghp_|4111/);
    expect(meta.waybill?.findings?.map(({ pointer }) => pointer)).toContain("/data/k ***/***");
  });

  it("looks at the blocks, links and structured content of an MCP result, and masks them in every place", async () => {
    const structuredContent = { text: TOKEN };
    const envelope = mcpEnvelope(structuredContent, {
      isError: false,
      structuredContent,
      content: [
        { type: "text", text: JSON.stringify(structuredContent) },
        { type: "resource_link", uri: "https://evil.example/x", name: "x" },
        { type: "image", mimeType: "image/png", data: btoa("4111111111111111 ".repeat(200)) },
      ],
    });
    const shown = await new ResultGuard({ credentials: "mask", links: "mark" }).envelope("a.b", envelope);
    expect(JSON.stringify(shown)).not.toContain(TOKEN);
    expect(shown.data).toEqual({ text: "***" });
    expect(shown.meta).toMatchObject({
      structuredContent: { text: "***" },
      content: [{ text: '{"text":"***"}' }, {}, {}],
    });
    expect(shown.meta.waybill?.findings?.map(({ pointer }) => pointer)).toEqual([
      "/data/text",
      "/meta/content/0/text",
      "/meta/content/1/uri",
      "/meta/structuredContent/text",
    ]);
  });

  it("withholds a result with an error that says that the operation has run, and not what was found", async () => {
    const failed = guard({ note: TOKEN, card: CARD }, { credentials: "withhold", cards: "mark" });
    const error = await failed.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CallError);
    const { code, message, details } = error as CallError;
    expect(code).toBe("WITHHELD");
    expect(message).toContain("has run");
    expect(details).toMatchObject({
      findings: [{ rule: "github-token", pointer: "/data/note" }, { rule: "payment-card" }],
    });
    expect(JSON.stringify([message, details])).not.toContain("ghp_");
  });

  it("masks in what a source said when it failed", () => {
    const error = new CallError("NOT_FOUND", "No.", { details: { said: `no ${TOKEN}`, card: CARD } });
    const shown = new ResultGuard({ credentials: "withhold", cards: "mark" }).error(error) as CallError;
    expect(shown.details).toEqual({ said: "no ***", card: CARD });
    expect(new ResultGuard({ cards: "mark" }).error(error)).toBe(error);
  });

  it("names the first hundred places, and masks all", async () => {
    const most = Array.from({ length: GUARD_LIMITS.findings }, () => TOKEN);
    const all = await guard(most, { credentials: "mask" });
    expect(all.meta.waybill?.findings).toHaveLength(GUARD_LIMITS.findings);
    const more = await guard([...most, TOKEN], { credentials: "mask" });
    expect(more.meta.waybill?.findings).toHaveLength(GUARD_LIMITS.findings);
    expect(JSON.stringify(more.data)).not.toContain("ghp_");
  });

  it("keeps every member of an object whose names are masked", async () => {
    const { data } = await guard(
      { [CARD]: 1, "5555 5555 5555 4444": 2, [TOKEN]: 3, "*** (2)": 4 },
      { credentials: "mask", cards: "mask" },
    );
    expect(data).toEqual({ "***": 1, "*** (2)": 2, "*** (3)": 3, "*** (2) (2)": 4 });
  });

  it("finds what hidden characters stand in, and does not give it out by taking them out", async () => {
    const text = `a ${TOKEN.slice(0, 9)}\u200b${TOKEN.slice(9)} b ${TOKEN}`;
    const { data, meta } = await guard({ text }, { credentials: "mask", hidden: "mask" });
    expect(data).toEqual({ text: "a *** b ***" });
    expect(meta.waybill?.findings?.map(({ rule, count }) => [rule, count])).toContainEqual([
      "github-token",
      2,
    ]);
    await expect(guard({ text }, { credentials: "withhold", hidden: "mark" })).rejects.toThrow();
  });

  it("names many finds in one text, and places with long names, in bounded time and room", async () => {
    const text = `${CARD} `.repeat(150_000);
    const data = { ["n".repeat(100_000)]: [text, ...Array.from({ length: 2_000 }, () => CARD)] };
    const { meta } = await guard(data, { cards: "mark" });
    expect(meta.waybill?.findings).toEqual([
      { kind: "cards", rule: "payment-card", pointer: "/data", count: 150_000 + 2_000 },
    ]);
    const short = await guard({ a: { ["n".repeat(GUARD_LIMITS.pointer - 8)]: CARD } }, { cards: "mark" });
    expect(short.meta.waybill?.findings?.[0]?.pointer).toHaveLength(GUARD_LIMITS.pointer);
    const long = await guard({ a: { ["n".repeat(GUARD_LIMITS.pointer - 7)]: CARD } }, { cards: "mark" });
    expect(long.meta.waybill?.findings?.[0]?.pointer).toBe("/data/a");
  });

  it("masks in the message of an error, too", () => {
    const failed = new CallError("INTERNAL_ERROR", `no access with ${TOKEN}`);
    const shown = new ResultGuard({ credentials: "withhold" }).error(failed) as CallError;
    expect(shown.message).toBe("no access with ***");
  });

  it("withholds what is too large to look at, unless it only marks", async () => {
    // What an envelope says besides its data counts as well.
    const half = "a b ".repeat(GUARD_LIMITS.characters / 8 - 16);
    const fits = [half, half.slice(1)];
    expect((await guard(fits, { credentials: "mask" })).meta.waybill?.findings).toBeUndefined();
    await expect(guard([...fits, "x ".repeat(128)], { credentials: "mask" })).rejects.toMatchObject({
      code: "WITHHELD",
    });
    const marked = await guard([...fits, "x ".repeat(128)], { credentials: "mark" });
    expect(marked.meta.waybill?.findings).toEqual([
      { kind: "guard", rule: "too-large", pointer: "", count: 1 },
    ]);
  });

  it("is refused with the name of what makes no sense", () => {
    const wrong = { credentials: "hide" } as unknown as GuardPolicy;
    expect(() => checkGuard("policy", wrong)).toThrow(
      "policy.credentials must be off, mask, mark or withhold",
    );
    expect(() => checkGuard("policy", { judge: { url: "file:///x" } })).toThrow("policy.judge.url must be");
    expect(() => checkGuard("policy", { cards: "mask", linkHosts: ["a.b"] })).not.toThrow();
  });
});

/** A judge over HTTP that answers as told, and what it was asked. */
async function withJudge<T>(
  answer: (asked: { texts: { pointer: string; text: string }[] }) => unknown,
  use: (url: string, asked: unknown[]) => Promise<T>,
): Promise<T> {
  const asked: unknown[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    asked.push(JSON.parse(body));
    const answered = answer(JSON.parse(body));
    if (answered === undefined) return;
    if (answered === "redirect") response.writeHead(302, { location: "/elsewhere" });
    response.end(typeof answered === "string" ? answered : JSON.stringify(answered));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/judge`, asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe("a judge", () => {
  it("is asked about every text, after what is masked, and marks or masks by place", async () => {
    await withJudge(
      ({ texts }) => ({
        findings: texts
          .filter(({ text }) => text.includes("@"))
          .map(({ pointer }) => ({
            pointer,
            rule: "email\u202e-address",
            action: pointer.endsWith("0") ? "mask" : "mark",
          })),
      }),
      async (url, asked) => {
        const data = { mails: ["ada@example.com", "bob@example.com"], note: TOKEN };
        const policy: GuardPolicy = { credentials: "mask", judge: { url } };
        const { data: shown, meta } = await guard(data, policy, createJudge({ url }));
        expect(shown).toEqual({ mails: ["***", "bob@example.com"], note: "***" });
        expect(meta.waybill?.findings).toContainEqual({
          ...{ kind: "judge", rule: "email-address", pointer: "/data/mails/0" },
          ...{ count: 1, masked: true },
        });
        expect(asked).toHaveLength(1);
        expect(JSON.stringify(asked)).toContain("bob@example.com");
        expect(JSON.stringify(asked)).not.toContain("ghp_");
      },
    );
  });

  it.each<readonly [string, (asked: object) => unknown]>([
    ["does not answer in time", () => undefined],
    ["answers no JSON", () => "nonsense"],
    ["redirects", () => "redirect"],
    [
      "names a place it was not asked about",
      () => ({ findings: [{ pointer: "/x", rule: "a", action: "mark" }] }),
    ],
    ["wants what there is not", () => ({ findings: [{ pointer: "/data", rule: "a", action: "off" }] })],
    ["answers too much", () => ({ findings: [], more: "x".repeat(JUDGE_LIMITS.bytes) })],
    [
      "finds too much",
      () => ({
        findings: Array(JUDGE_LIMITS.findings + 1).fill({ pointer: "/data", rule: "a", action: "mark" }),
      }),
    ],
  ])(
    "that %s has not judged: the result is withheld, or marked where the policy says so",
    async (_, answer) => {
      await withJudge(answer, async (url) => {
        const judge = createJudge({ url, timeoutMs: 500 });
        await expect(guard("text", { judge: { url } }, judge)).rejects.toMatchObject({ code: "WITHHELD" });
        const { data, meta } = await guard("text", { judge: { url, otherwise: "mark" } }, judge);
        expect(data).toBe("text");
        expect(meta.waybill?.findings).toEqual([
          { kind: "judge", rule: "not-judged", pointer: "", count: 1 },
        ]);
      });
    },
  );

  it("masks below a member whose name was marked", async () => {
    const judge: Judge = async ({ texts }) =>
      texts
        .filter(({ pointer }) => pointer.endsWith("/who"))
        .map(({ pointer }) => ({ pointer, rule: "name", action: "mask" }));
    const policy: GuardPolicy = { credentials: "mark", judge: { url: "http://127.0.0.1/" } };
    const { data } = await guard({ [TOKEN]: { who: "Ada" } }, policy, judge);
    expect(data).toEqual({ [TOKEN]: { who: "***" } });
  });

  it("is sent no more than its bound, and what is over it counts as not judged", async () => {
    const none: Judge = async () => [];
    const policy: GuardPolicy = { judge: { url: "http://127.0.0.1/" } };
    const fits = "a ".repeat((GUARD_LIMITS.judgedCharacters - 64) / 2);
    expect((await guard(fits, policy, none)).data).toBe(fits);
    await expect(
      guard(["a ".repeat(GUARD_LIMITS.judgedCharacters / 2), "b"], policy, none),
    ).rejects.toMatchObject({
      code: "WITHHELD",
    });
  });
});
