import { describe, expect, it } from "vitest";
import { refusal, STATUS, TIERED, text, withMeta } from "../../test/sample-results.ts";
import { isMarkedEnvelope } from "../core/envelope/envelope.ts";
import { RESULT_META_KEY } from "../core/result/tool-result.ts";
import { CallError, defineOperation, OperationRegistry, Type } from "../index.ts";
import { decodeToolResult, parseEnvelopeBlock, toErrorPayload, toToolResult, transcode } from "./index.ts";
import { createToolCaller, type ToolFormat, toolOutputSchema } from "./result-format.ts";

const codes = (value: unknown) => decodeToolResult(value).odd.map(({ code }) => code);
const tiered = (fields: object) => ({ content: [], structuredContent: { ...TIERED, ...fields } });

describe("a residual that contradicts the result", () => {
  it("X-4 is told when its status does not go with the outcome, and never replaces a status", () => {
    const failed = withMeta(
      { content: [text("boom")], isError: true },
      { format: "mcp", set: { "/status": "ok" } },
    );
    expect(codes(failed)).toContain("flag_mismatch");
    const stated = withMeta(
      { content: [], structuredContent: STATUS, isError: false },
      { set: { "/status": "error" } },
    );
    expect(decodeToolResult(stated).result?.status).toBe("ok");
  });

  it.each(["/tool", "/requestId", "/toolVersion", "/capabilities", "/durationMs"])(
    "X-4 does not take away the %s that an envelope states",
    (pointer) => {
      const stated = tiered({ capabilities: ["envelope-v1", "x"] });
      const { result } = decodeToolResult(withMeta(stated, { unset: [pointer] }));
      expect(result).toEqual(decodeToolResult(stated).result);
    },
  );

  it("X-4 costs no more for saying the same thing many times", () => {
    const structuredContent = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`key${at}`, at]));
    let looks = 0;
    const watched = new Proxy(structuredContent, {
      ownKeys(target) {
        looks += 1;
        return Reflect.ownKeys(target);
      },
    });
    const unset = Array.from({ length: 3_000 }, () => "/data");
    const { odd } = decodeToolResult(withMeta({ content: [], structuredContent: watched }, { unset }));
    expect(odd.map(({ code }) => code)).toEqual(["residual_refused"]);
    expect(looks).toBeLessThan(20);
  });

  it("X-4 does not take an error away, nor put another in its place", () => {
    const failed = toToolResult({
      payload: toErrorPayload(new CallError("ACCESS_DENIED")),
      meta: { tool: "t" },
    });
    const forged = withMeta(failed, {
      unset: ["/error", "/error/code"],
      set: {
        "/data": { ok: 1 },
        "/error/message": "Fine.",
        "/error/code": "TIMEOUT",
        "/error/category": "timeout",
      },
    });
    expect(decodeToolResult(forged).error).toMatchObject({ code: "ACCESS_DENIED", retryable: false });
    expect(decodeToolResult(forged).error?.message).not.toBe("Fine.");
  });

  it("X-4 brings back only a code that the stated one can stand for", () => {
    const error = { error: "m", error_code: "forbidden", error_details: null };
    const failed = { ...tiered({ error }), isError: true };
    const code = (value: string) =>
      decodeToolResult(withMeta(failed, { set: { "/error/code": value } })).error?.code;
    expect(code("TIMEOUT")).toBe("forbidden");
    expect(code("ACCESS_DENIED")).toBe("ACCESS_DENIED");
  });

  it("X-4 does not add data to a success that has none", () => {
    const forged = withMeta(
      { content: [text("balance: 5")] },
      { format: "mcp", set: { "/data": { balance: 9 } } },
    );
    expect(decodeToolResult(forged).data).toEqual([text("balance: 5")]);
    expect(codes(forged)).toEqual(["residual_refused"]);
  });

  it("X-4 is told when it shows other content, derived content too", () => {
    const shown = { content: [text('{"a":1}')], structuredContent: { a: 1 } };
    expect(codes(withMeta(shown, { set: { "/content": [text("evil")] } }))).toEqual(["content_replaced"]);
  });
});

describe("more than one residual", () => {
  const inner = { [RESULT_META_KEY]: { residual: { unset: ["/data"] } } };
  const carried = {
    data: null,
    meta: { source: "mcp", isError: true, content: [], structuredContent: null, _meta: inner },
  };

  it("X-4 the second does not put in what the first took away", () => {
    const forged = withMeta(
      { content: [], structuredContent: carried, isError: true },
      { format: "response-envelope", set: { "/data": { admin: 1 }, "/tier": "enterprise" } },
    );
    expect(decodeToolResult(forged).data).not.toEqual({ admin: 1 });
  });

  it.each(["replaced", "/_meta"])("X-4 one does not bring another one in: %s", (way) => {
    const hidden = { residual: { set: { "/tier": "enterprise", "/data": { admin: 1 } } } };
    const residual =
      way === "replaced"
        ? { unset: ["/tier", "/data"], replaced: hidden }
        : { unset: ["/tier", "/data"], set: { "/_meta": { [RESULT_META_KEY]: hidden } } };
    const forged = withMeta(tiered({ tier: "community", data: null }), residual);
    const { result, data } = decodeToolResult(transcode(forged, "mcp", { residual: false }));
    expect(result?.tier).not.toBe("enterprise");
    expect(data).not.toEqual({ admin: 1 });
  });
});

describe("envelopes made from what somebody else says", () => {
  it("X-4 are not marked as ours when they say more than an MCP result", () => {
    const set = { "/error": { message: "m", code: "UPGRADE_REQUIRED" }, "/durationMs": 1 };
    const forged = withMeta({ content: [text("x")], isError: true }, { format: "mcp", set });
    expect(isMarkedEnvelope(transcode(forged, "response-envelope"))).toBe(false);
    const layout = { "/extra/response-envelope": { structured: { evil: 1 } } };
    const slipped = withMeta({ content: [], structuredContent: { a: 1 } }, { format: "mcp", set: layout });
    expect(isMarkedEnvelope(transcode(slipped, "response-envelope"))).toBe(false);
    expect(codes(slipped)).toContain("structured_claimed");
  });
});

describe("what cannot be read again", () => {
  const deep = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown;
  const write = (payload: unknown) =>
    toToolResult({ summaryMarkdown: "", payload, meta: { tool: "t", ts: "" } });

  it("TE-3 is not written: one level too many, in short and in long lists", () => {
    for (const around of [
      (value: unknown) => value,
      (value: unknown) => ({ rows: [...Array(70).fill(1), value] }),
    ]) {
      const levels = around === undefined ? 0 : JSON.stringify(around(0)).startsWith("{") ? 509 : 511;
      const { content } = write(around(deep(levels)));
      expect(refusal(() => parseEnvelopeBlock((content[1] as { text: string }).text))).toBe("accepted");
      expect(refusal(() => write(around(deep(levels + 1))))).toBe("not_json");
    }
  });

  it.each(["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] satisfies ToolFormat[])(
    "X-2 is a failure that can be read, in every format: %s",
    async (format) => {
      const values: Record<string, unknown> = {
        deep: deep(5_000),
        nan: { n: Number.NaN },
        map: new Map([[1, { a: 1n }]]),
      };
      for (const [name, value] of Object.entries(values)) {
        const operation = defineOperation({
          namespace: "a",
          name,
          version: "1.0.0",
          type: "query",
          description: "Tries.",
          outputPolicy: "off",
          handler: () => value,
        });
        const result = await createToolCaller(new OperationRegistry([operation]), { format })(operation);
        const decoded = decodeToolResult(JSON.parse(JSON.stringify(result)));
        expect([name, decoded.format, decoded.isError || decoded.data !== null]).toEqual([
          name,
          format,
          true,
        ]);
      }
    },
  );

  it("TR-4 what JSON changes is held against the schema once more", async () => {
    const operation = defineOperation({
      namespace: "a",
      name: "date",
      version: "1.0.0",
      type: "query",
      description: "Tries.",
      outputSchema: Type.Object({ at: Type.Object({}) }),
      handler: () => ({ at: new Date(0) as unknown as Record<never, never> }),
    });
    for (const format of ["tiered-envelope", "status-envelope"] as const) {
      const { structuredContent, isError } = await createToolCaller(new OperationRegistry([operation]), {
        format,
      })(operation);
      expect(isError).toBe(true);
      const checked = await toolOutputSchema(operation, format)?.["~standard"].validate(structuredContent);
      expect(checked && "issues" in checked ? checked.issues : undefined).toBeUndefined();
    }
  });

  it("X-2 calls that make no sense are answered too", async () => {
    const callTool = createToolCaller(new OperationRegistry([]), {
      format: "mcp",
      capabilities: null as never,
    });
    expect(await (callTool as (...given: unknown[]) => Promise<unknown>)(null, {}, null)).toMatchObject({
      isError: true,
    });
  });
});
