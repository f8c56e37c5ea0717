import { describe, expect, it } from "vitest";
import { makeParameter, makePlan } from "../../../../test/operation-plans.ts";
import { PACKAGE_VERSION } from "../../../core/package-version.ts";
import type { OperationPlan, ResponsePlan } from "../plan.ts";
import { checkOptionHeaders } from "./input-text.ts";
import { createRequestBuilder } from "./request-builder.ts";

function pathOf(path: string, input: Record<string, unknown>, given: Partial<OperationPlan> = {}): string {
  const parameters = Object.keys(input).map((name) => makeParameter({ name, in: "path" }));
  return createRequestBuilder(makePlan({ path, parameters, ...given }), { limits: {} })(input).path;
}

describe("paths", () => {
  it("RE-25 are filled in, wherever the parameters stand", () => {
    expect(pathOf("/a/{x}.{ext}", { x: "pic", ext: "png" })).toBe("/a/pic.png");
    expect(pathOf("/{a},{b}", { a: "1,2", b: "3" })).toBe("/1%2C2,3");
    expect(pathOf("/{x}/{x}", { x: "é/\\?#;" })).toBe("/%C3%A9%2F%5C%3F%23%3B/%C3%A9%2F%5C%3F%23%3B");
    expect(pathOf("/{x}", { x: "%2e%2e" })).toBe("/%252e%252e");
    expect(pathOf("/a b/{not}/é", {})).toBe("/a%20b/%7Bnot%7D/%C3%A9");
    expect(pathOf("/{$top}/{constructor}", { $top: 1, constructor: "c" })).toBe("/1/c");
  });

  it.each([
    ["/{x}", { x: ".." }],
    ["/{x}", { x: "." }],
    ["/{x}.", { x: "." }],
    ["/{x}{y}/z", { x: ".", y: "." }],
    ["/a/{x}", { x: "" }],
  ])("RE-25 never lead elsewhere: %s %j", (path, input) => {
    expect(() => pathOf(path, input)).toThrow(
      expect.objectContaining({ code: "VALIDATION_ERROR", message: expect.stringContaining('"x"') }),
    );
  });

  it("RE-25 with dot segments of the document's own are told when called", () => {
    expect(() => pathOf("/a/../b", {})).toThrow(expect.objectContaining({ code: "NOT_IMPLEMENTED" }));
  });

  it("RE-25 that hold a query or fragment, as some documents have it, are taken apart", () => {
    const parameters = [makeParameter({ name: "id", in: "path" }), makeParameter({ name: "q", in: "query" })];
    const plan = makePlan({ path: "/x?action=get&id={id}#frag", parameters });
    const draft = createRequestBuilder(plan, { limits: {} })({ id: "a&b", q: 1 });
    expect([draft.path, draft.query]).toEqual(["/x", ["action=get&id=a%26b", "q=1"]]);
  });
});

describe("inputs", () => {
  it("RE-25 are objects, or nothing", () => {
    const build = createRequestBuilder(makePlan(), { limits: {} });
    expect(build(undefined)).toEqual(build({}));
    for (const input of [[], "x", 7]) expect(() => build(input)).toThrow("The input must be an object");
  });

  it("RE-25 are read from own properties alone", () => {
    const names = ["__proto__", "constructor", "toString"];
    const parameters = names.map((name) => makeParameter({ name, in: "query" }));
    const build = createRequestBuilder(makePlan({ parameters }), { limits: {} });
    expect(build({}).query).toEqual([]);
    expect(build(JSON.parse('{"__proto__":"a","constructor":"b"}')).query).toEqual([
      "__proto__=a",
      "constructor=b",
    ]);
  });

  it("RE-25 do not leak from one call into the next", () => {
    const parameters = [
      makeParameter({ name: "x-a", in: "header" }),
      makeParameter({ name: "q", in: "query" }),
    ];
    const build = createRequestBuilder(makePlan({ parameters }), { limits: {} });
    const first = build({ "x-a": "1", q: "1" });
    const second = build({});
    expect(first.headers["x-a"]).toBe("1");
    expect([second.headers["x-a"], second.query]).toEqual([undefined, []]);
  });

  it("RE-25 of a method that cannot be sent are refused", () => {
    for (const method of ["CONNECT", "GET X", ""]) {
      const build = createRequestBuilder(makePlan({ method }), { limits: {} });
      expect(() => build({})).toThrow(expect.objectContaining({ code: "NOT_IMPLEMENTED" }));
    }
  });
});

function response(status: string, ...types: string[]): ResponsePlan {
  return { status, headers: {}, content: types.map((mediaType) => ({ mediaType })) };
}

describe("headers", () => {
  it.each([
    [[], "*/*"],
    [[response("204")], "*/*"],
    [
      [response("200", "text/csv", "application/json; charset=utf-8"), response("400", "text/html")],
      "application/json, text/csv;q=0.9",
    ],
    [[response("default", "application/xml")], "application/xml"],
    [[response("200", "image/*"), response("2XX", "a/b+json;")], "a/b+json, image/*;q=0.9"],
    [[response("200", "a/b\r\nx: 1")], "*/*"],
  ])("RE-25 say what an operation may answer with: %#", (responses, accept) => {
    const build = createRequestBuilder(makePlan({ responses }), { limits: {} });
    expect(build({}).headers).toEqual({ accept, "user-agent": `waybill/${PACKAGE_VERSION}` });
  });

  it("RE-25 may be given with the options, and by a call that declares them", () => {
    const parameters = [makeParameter({ name: "X-Team", in: "header" })];
    const headers = { "X-Team": "blue", "User-Agent": "mine" };
    const build = createRequestBuilder(makePlan({ parameters }), { headers, limits: {} });
    expect(build({}).headers).toEqual({ accept: "*/*", "user-agent": "mine", "x-team": "blue" });
    expect(build({ "X-Team": "red" }).headers["x-team"]).toBe("red");
  });

  it.each([
    { "a b": "c" },
    { "": "c" },
    { Host: "c" },
    { "Content-Type": "c" },
    { "proxy-authorization": "c" },
    { a: "b\nc" },
    { a: "é" },
    { a: 7 as unknown as string },
    { a: undefined as unknown as string },
  ])("RE-25 that cannot be sent are a TypeError: %j", (headers) => {
    expect(() => createRequestBuilder(makePlan(), { headers, limits: {} })).toThrow(TypeError);
    const [name = ""] = Object.keys(headers);
    expect(() => checkOptionHeaders(headers)).toThrow(new RegExp(`^headers: .*"${name}"`, "i"));
  });
});
