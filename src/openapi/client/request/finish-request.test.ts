import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeBody, makePlan } from "../../../../test/operation-plans.ts";
import { runs, scaled } from "../../../../test/runs.ts";
import type { RequestDraft } from "../http-message.ts";
import { createRequestBuilder, finishRequest } from "./request-builder.ts";

function draft(given: Partial<RequestDraft> = {}): RequestDraft {
  return {
    method: "GET",
    origin: "https://api.example",
    path: "/pets",
    query: [],
    headers: {},
    cookies: [],
    body: undefined,
    ...given,
  };
}

const REFUSED = expect.objectContaining({ code: "VALIDATION_ERROR" });
const TOO_LARGE = expect.objectContaining({ code: "TOO_LARGE" });

describe("a request that is finished", () => {
  it("RE-25 has its query and cookies joined", () => {
    const headers = { cookie: "z=0", accept: "*/*" };
    const request = finishRequest(draft({ query: ["a=1", "b=%20"], cookies: ["c=2", "d=3"], headers }), {});
    expect(request.path).toBe("/pets?a=1&b=%20");
    expect(request.headers).toEqual({ accept: "*/*", cookie: "z=0; c=2; d=3" });
    expect(headers).toEqual({ cookie: "z=0", accept: "*/*" });
  });

  it("RE-25 names the header that cannot be sent, and never shows its value", () => {
    for (const [name, value] of [
      ["x-a", "secret\n"],
      ["x b", "secret"],
      ["host", "secret"],
    ] as const) {
      const finish = () => finishRequest(draft({ headers: { accept: "*/*", [name]: value } }), {});
      expect(finish).toThrow(`not valid in its header "${name}"`);
      expect(finish).not.toThrow(/secret/);
    }
  });

  it("RE-25 has a path that every URL parser leaves as it is", () => {
    const piece = fc.constantFrom(
      "a",
      ".",
      "..",
      "/",
      "%2e",
      "%2E",
      "%",
      "%41",
      "\\",
      "?",
      "#",
      " ",
      "\t",
      "é",
      ";",
      "^",
      "|",
    );
    let passed = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const path = `/${pieces.join("")}`;
        try {
          finishRequest(draft({ path }), {});
        } catch (error) {
          expect(error).toEqual(REFUSED);
          return;
        }
        passed++;
        expect(new URL(`https://api.example${path}`).pathname).toBe(path);
      }),
      runs(2_000),
    );
    expect(passed).toBeGreaterThan(scaled(2_000) / 40);
  });

  it.each<Partial<RequestDraft>>([
    { method: "GET /x" },
    { method: "CONNECT" },
    { path: "pets" },
    { path: "/a/../b" },
    { path: "/a/%2e%2E" },
    { path: "/a\r\nb" },
    { path: "/a?b" },
    { query: ["a=b c"] },
    { query: ["a=#"] },
    { query: ["a=%"] },
    { headers: { "a b": "c" } },
    { headers: { "x-a": "b\r\nc" } },
    { headers: { "x-a": " b" } },
    { headers: { "x-a": "é" } },
    { headers: { host: "evil.example" } },
    { headers: { "content-length": "1" } },
    { cookies: ["a=b; c=d"] },
    { cookies: ["a=b\n"] },
  ])("RE-25 is looked at once more, whoever wrote it: %j", (given) => {
    expect(() => finishRequest(draft(given), {})).toThrow(REFUSED);
  });

  it("RE-25 has an address up to the limit and no longer", () => {
    const length = "https://api.example/pets?".length;
    const limits = { urlCharacters: 100 };
    const of = (characters: number) => draft({ query: ["x".repeat(characters - length)] });
    expect(finishRequest(of(100), limits).path).toHaveLength(100 - "https://api.example".length);
    expect(() => finishRequest(of(101), limits)).toThrow(TOO_LARGE);
    expect(() => finishRequest(of(32_768), {})).not.toThrow();
    expect(() => finishRequest(of(32_769), {})).toThrow(TOO_LARGE);
  });

  it("RE-25 has a body up to the limit and no larger", () => {
    const limits = { requestBytes: 10 };
    for (const fill of [(n: number) => "x".repeat(n), (n: number) => new Uint8Array(n)]) {
      expect(() => finishRequest(draft({ body: fill(10) }), limits)).not.toThrow();
      expect(() => finishRequest(draft({ body: fill(11) }), limits)).toThrow(TOO_LARGE);
    }
    expect(() => finishRequest(draft({ body: "ééééé" }), limits)).not.toThrow();
    expect(() => finishRequest(draft({ body: "éééééx" }), limits)).toThrow(TOO_LARGE);
    const build = createRequestBuilder(makePlan({ method: "POST", body: makeBody("text/plain") }), {
      limits,
    });
    expect(build({ body: "x".repeat(10) }).body).toHaveLength(10);
    expect(() => build({ body: "x".repeat(11) })).toThrow(TOO_LARGE);
  });
});
