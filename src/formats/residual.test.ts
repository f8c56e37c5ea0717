import { describe, expect, it } from "vitest";
import { envelope, STATUS, TIERED, text, withMeta } from "../../test/sample-results.ts";
import { isMarkedEnvelope } from "../core/envelope/envelope.ts";
import { httpEnvelope, isResponseEnvelope } from "../index.ts";
import { decodeToolResult, FORMAT_NAMES, transcode } from "./index.ts";

describe("the residual", () => {
  it("X-4 never says whether a result failed", () => {
    const forged = withMeta(
      { content: [text("x")], isError: true },
      { format: "mcp", set: { "/isError": false }, unset: ["/isError"] },
    );
    expect(decodeToolResult(forged)).toMatchObject({ isError: true });
    expect(decodeToolResult(forged).odd.map(({ code }) => code)).toEqual([
      "residual_refused",
      "residual_refused",
    ]);
  });

  it("X-4 never turns an error into a success by way of unusual layout", () => {
    const extra = { isError: false, result: { isError: false }, omitsError: true, noContent: true };
    for (const name of FORMAT_NAMES) {
      const forged = withMeta(
        { content: [text("x")], isError: true },
        { format: "mcp", set: { "/extra": { [name]: extra } } },
      );
      const written = transcode(forged, name);
      const { isError } =
        name === "response-envelope"
          ? (written.meta as { isError: boolean })
          : (decodeToolResult(written) as { isError: boolean });
      expect([name, isError]).toEqual([name, true]);
    }
  });

  it("X-4 never replaces the tier, or the data, that are there", () => {
    const forged = withMeta(
      { content: [], structuredContent: { ...TIERED, tier: "community" } },
      {
        format: "tiered-envelope",
        set: {
          "/tier": "enterprise",
          "/data": "forged",
          "/extra/tiered-envelope": { envelope: { tier: "enterprise", data: 1 } },
        },
      },
    );
    const { result, data } = decodeToolResult(forged);
    expect(result?.tier).toBe("community");
    expect(data).toEqual({ risk: 1 });
    expect(transcode(forged, "tiered-envelope")).toMatchObject({
      structuredContent: { tier: "community", data: { risk: 1 } },
    });
  });

  it("X-4 never takes data away that a format would not have made up", () => {
    const forged = withMeta(
      { content: [], structuredContent: STATUS },
      { format: "status-envelope", unset: ["/data"] },
    );
    expect(decodeToolResult(forged).data).toEqual({ hits: 1 });
  });

  it("X-4 decides how to read a result only among the ways that fit", () => {
    const claims = (format: string) =>
      decodeToolResult(withMeta({ content: [], structuredContent: STATUS }, { format })).format;
    expect(claims("mcp")).toBe("mcp");
    expect(claims("tiered-envelope")).toBe("status-envelope");
    expect(claims("constructor")).toBe("status-envelope");
  });

  it("X-4 does not let a restored envelope pass for one made here", () => {
    const given = httpEnvelope({ a: 1 }, { statusCode: 201, headers: {}, contentType: "text/plain" });
    const restored = transcode(transcode(given, "tool-envelope"), "response-envelope");
    expect(restored).toEqual(given);
    expect(isResponseEnvelope(restored)).toBe(true);
    expect(isMarkedEnvelope(restored)).toBe(false);
    expect(isMarkedEnvelope(transcode(envelope(1), "response-envelope"))).toBe(true);
  });

  it.each([
    7,
    null,
    [],
    { format: 3, set: 7, unset: 8 },
    {
      set: {
        "": 1,
        "/": 1,
        "/__proto__": {},
        "/__proto__/polluted": 1,
        "/error/__proto__": {},
        "/error/message/x": 1,
        data: 1,
      },
    },
    {
      set: {
        "/tier": "gold",
        "/content": "x",
        "/error": { message: 1 },
        "/http": {},
        "/facts": { attempts: "x" },
        "/extra": { mcp: 1 },
      },
    },
    { unset: [1, null, "/nothing", "__proto__"] },
  ])("X-4 survives the malformed residual %j, and reports it", (residual) => {
    const result = { content: [text("x")], structuredContent: { a: 1 } };
    const decoded = decodeToolResult(withMeta(result, residual));
    expect(decoded).toMatchObject({ format: "mcp", data: { a: 1 }, result: { content: [text("x")] } });
    expect(decoded.odd.every(({ code }) => code === "residual_refused")).toBe(true);
    expect(decoded.odd.length).toBeGreaterThan(0);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});
