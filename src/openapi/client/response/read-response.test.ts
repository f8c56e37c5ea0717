import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeParameter, makePlan, makeResponse, makeWhole } from "../../../../test/openapi-plans.ts";
import type { HTTPResponseMeta } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { MAX_JSON_DEPTH } from "../../../core/json/json-value.ts";
import { toWire } from "../../../core/wire/wire.ts";
import type { WholeResponse } from "../http-message.ts";
import type { OperationPlan } from "../plan.ts";
import { createResponseReader } from "./read-response.ts";

const operationId = "shop.things";

function read(response: WholeResponse, plan: OperationPlan = makePlan(), allowUndelimited = false) {
  return createResponseReader(plan, { operationId, allowUndelimited })(response);
}

function failure(run: () => unknown): CallError {
  try {
    run();
  } catch (error) {
    if (error instanceof CallError) return error;
    throw error;
  }
  throw new Error("It did not fail.");
}

const utf16 = (text: string) => new Uint8Array(Buffer.from(text, "utf16le"));
const bytes = (...list: number[]) => Uint8Array.from(list);

describe("bodies", () => {
  it.each<[string, string | undefined, string | Uint8Array, unknown]>([
    ["JSON", "application/json", '{"a":[1,null]}', { a: [1, null] }],
    ["JSON by its ending", "application/hal+json; charset=UTF-8", "[]", []],
    ["a JSON scalar", "application/json", " 7\n", 7],
    ["JSON with a mark before it", "application/json", "\uFEFF{}", {}],
    ["JSON in UTF-16, by its header", "application/json; charset=utf-16le", utf16('{"ä":1}'), { ä: 1 }],
    ["JSON in UTF-16, by its mark", "application/json", utf16('\uFEFF"ä"'), "ä"],
    ["JSON in Latin 1", "application/json; charset=iso-8859-1", bytes(0x22, 0xe4, 0x22), "ä"],
    ["JSON in what nobody knows", "application/json; charset=klingon", '"ä"', "ä"],
    ["text", "text/plain", "ä\n", "ä\n"],
    ["text that looks like JSON", "text/plain", '{"a":1}', '{"a":1}'],
    ["text in Latin 1", "text/plain; charset=latin1", bytes(0xe4), "ä"],
    ["text in what nobody knows", "text/plain; charset=klingon", "ä", "ä"],
    ["XML", "application/atom+xml", "<a/>", "<a/>"],
    ["a form", "application/x-www-form-urlencoded", "a=1", "a=1"],
    ["events, where no stream is read", "text/event-stream", "data: 1\n\n", "data: 1\n\n"],
    ["bytes", "image/png", bytes(1, 2, 255), bytes(1, 2, 255)],
    ["what does not say what it is", undefined, "{}", bytes(0x7b, 0x7d)],
    ["what says nonsense", "nonsense", "{}", bytes(0x7b, 0x7d)],
    ["an empty body", "application/json", "", undefined],
    ["an empty body that calls itself text", "text/html", "", undefined],
  ])("RE-26 reads %s", (_, contentType, body, data) => {
    expect(read(makeWhole(body, contentType)).data).toEqual(data);
  });

  it("RE-26 reads data that plain JSON cannot hold, and only where it says so", () => {
    const data = { at: new Date(0), raw: bytes(1), none: undefined, big: 1n };
    const text = JSON.stringify(toWire(data));
    expect(read(makeWhole(text, "application/vnd.waybill.data+json")).data).toEqual(data);
    expect(read(makeWhole(text, "application/json")).data).toEqual(JSON.parse(text));
    const bad = failure(() =>
      read(makeWhole('{"$waybill":["evil\\u001b[31m"]}', "application/vnd.waybill.data+json")),
    );
    expect(bad.code).toBe("OUTPUT_INVALID");
    expect(bad.message).not.toContain("evil");
  });

  it("RE-26 goes by what is declared where a response does not say what it is", () => {
    const one = makePlan({ responses: [makeResponse("200", { "application/json": undefined })] });
    expect(read(makeWhole("7"), one).data).toBe(7);
    expect(failure(() => read(makeWhole("nope"), one)).code).toBe("OUTPUT_INVALID");
    const two = makePlan({
      responses: [makeResponse("2XX", { "application/json": undefined, "text/csv": undefined })],
    });
    expect(read(makeWhole(' {"a":1}'), two).data).toEqual({ a: 1 });
    expect(read(makeWhole("7"), two).data).toEqual(bytes(0x37));
    expect(read(makeWhole("{a"), two).data).toEqual(bytes(0x7b, 0x61));
    const any = makePlan({ responses: [makeResponse("default", { "*/*": undefined })] });
    expect(read(makeWhole("[1]"), any).data).toEqual([1]);
  });

  it("RE-26 takes an empty text for one where text is declared", () => {
    const plan = makePlan({ responses: [makeResponse("200", { "text/plain": undefined })] });
    expect(read(makeWhole("", "text/plain"), plan).data).toBe("");
    expect(read(makeWhole("", "text/plain", { status: 204 }), plan).data).toBeUndefined();
  });

  it.each(["{", '{"a":1}}', "undefined", "NaN", "<html>"])(
    "RE-26 never takes for a success what says it is JSON and is not: %s",
    (body) => {
      const error = failure(() => read(makeWhole(body, "application/json")));
      expect(error).toMatchObject({ code: "OUTPUT_INVALID", details: { status: 200 } });
      expect((error.cause as Error).message).toBe(body);
      expect(error.message).not.toContain("<html>");
    },
  );

  it("RE-26 refuses JSON that is not UTF-8, and takes a replacement character for itself", () => {
    expect(failure(() => read(makeWhole(bytes(0x22, 0xff, 0x22), "application/json"))).code).toBe(
      "OUTPUT_INVALID",
    );
    expect(read(makeWhole('"\uFFFD"', "application/json")).data).toBe("\uFFFD");
  });

  it("RE-26 reads JSON down to a depth and no further", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(read(makeWhole(nested(MAX_JSON_DEPTH), "application/json")).meta.source).toBe("http");
    for (const levels of [MAX_JSON_DEPTH + 1, 200_000]) {
      expect(failure(() => read(makeWhole(nested(levels), "application/json"))).code).toBe("OUTPUT_INVALID");
    }
  });

  it("RE-26 never pollutes a prototype", () => {
    const { data } = read(makeWhole('{"__proto__":{"polluted":1},"constructor":1}', "application/json"));
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("RE-26 never throws anything but a call error, whatever bytes come as whatever type", () => {
    const type = fc.constantFrom(
      "application/json",
      "text/plain; charset=utf-16",
      "application/vnd.waybill.data+json",
      "x",
      "",
    );
    fc.assert(
      fc.property(
        fc.uint8Array(),
        type,
        fc.integer({ min: 200, max: 599 }),
        fc.boolean(),
        (body, contentType, status, delimited) => {
          try {
            read(makeWhole(body, contentType, { status, delimited }));
          } catch (error) {
            expect(error).toBeInstanceOf(CallError);
          }
        },
      ),
    );
  });
});

describe("bodies that end with the connection", () => {
  const open = { delimited: false };

  it.each([
    ['{"a":1}', "application/json"],
    [" [1]", "application/json"],
    ['"x"', "application/json"],
  ])("RE-26 reads what shows its own end: %s", (body, type) => {
    expect(read(makeWhole(body, type, open)).data).toEqual(JSON.parse(body));
  });

  it.each([
    ["12", "application/json"],
    ["", "application/json"],
    ["some text", "text/plain"],
    ["bytes", "image/png"],
  ])("RE-26 refuses what may have been cut, unless told otherwise: %s as %s", (body, type) => {
    const error = failure(() => read(makeWhole(body, type, open)));
    expect(error.code).toBe("OUTPUT_INVALID");
    expect(error.message).toContain("allowUndelimited");
    expect(read(makeWhole(body, type, open), makePlan(), true).meta.source).toBe("http");
  });

  it("RE-26 never takes the beginning of a JSON body for the whole", () => {
    const text = JSON.stringify({ a: [1, "ü", { b: null }], c: -1.5e3 });
    const whole = new TextEncoder().encode(text);
    for (let end = 0; end < whole.length; end++) {
      const cut = makeWhole(whole.subarray(0, end), "application/json", open);
      expect(failure(() => read(cut)).code).toBe("OUTPUT_INVALID");
    }
  });
});

describe("envelopes of responses", () => {
  it("RE-25 joins headers of one name and keeps cookies apart", () => {
    const headers = {
      "content-type": "text/plain",
      vary: ["a", "b"],
      "set-cookie": ["a=1, 2", "b=2"],
      __proto__x: "1",
    };
    const meta = read(makeWhole("x", undefined, { headers, attempts: 3 })).meta as HTTPResponseMeta;
    expect(meta).toEqual({
      source: "http",
      statusCode: 200,
      headers: { "content-type": "text/plain", vary: "a, b", __proto__x: "1" },
      contentType: "text/plain",
      setCookie: ["a=1, 2", "b=2"],
      waybill: { obtained: "body", attempts: 3 },
    });
  });

  it("RE-25 takes any header name for an ordinary one", () => {
    const headers = JSON.parse('{"__proto__":"x","constructor":["a","b"],"set-cookie":"c=1"}');
    const meta = read(makeWhole("", undefined, { headers })).meta as HTTPResponseMeta;
    expect(Object.getPrototypeOf(meta.headers)).toBe(Object.prototype);
    expect(JSON.stringify(meta.headers)).toBe('{"__proto__":"x","constructor":"a, b"}');
    expect(meta.setCookie).toEqual(["c=1"]);
    expect(meta.contentType).toBe("");
  });

  it("RE-25 gives no data for HEAD and for statuses without a body", () => {
    const head = read(makeWhole("", "application/json", { delimited: false }), makePlan({ method: "HEAD" }));
    expect(head.data).toBeUndefined();
    expect(head.meta).toMatchObject({ statusCode: 200, contentType: "application/json" });
    for (const status of [204, 205])
      expect(read(makeWhole("x", "text/plain", { status })).data).toBeUndefined();
  });

  it("RE-25 takes 304 for an answer where one can ask for it, and for an error elsewhere", () => {
    const parameters = [makeParameter("If-None-Match", { type: "string" }, { in: "header" })];
    const envelope = read(makeWhole("", undefined, { status: 304 }), makePlan({ parameters }));
    expect(envelope).toMatchObject({ data: undefined, meta: { statusCode: 304 } });
    const error = failure(() => read(makeWhole("", undefined, { status: 304 })));
    expect(error).toMatchObject({
      code: "EXECUTION_ERROR",
      message: `"${operationId}" answered 304 Not Modified.`,
    });
  });

  it("RE-27 believes what Waybill says of pages, and nobody else", () => {
    const waybill = makePlan({ waybill: {} });
    const page = (header: string, plan = waybill) =>
      read(makeWhole("", undefined, { headers: { "waybill-facts": header } }), plan).meta.waybill;
    expect(page('{"page":{"next":"c2"},"code":"X","attempts":9}')).toEqual({
      obtained: "body",
      page: { next: "c2" },
    });
    expect(page('{"page":{}}')).toEqual({ obtained: "body", page: {} });
    const input = { q: "x".repeat(60_000), page: 2 };
    expect(page(JSON.stringify({ page: { next: "2", input } }))?.page).toEqual({ next: "2", input });
    expect(page(JSON.stringify({ page: { next: "2", input: "x".repeat(65_536) } }))).toEqual({
      obtained: "body",
    });
    for (const bad of [
      "{",
      "[]",
      '{"page":1}',
      '{"page":{"next":1}}',
      `{"page":{"next":"${"x".repeat(8_200)}"}}`,
    ]) {
      expect(page(bad)).toEqual({ obtained: "body" });
    }
    expect(page('{"page":{"next":"c2"}}', makePlan())).toEqual({ obtained: "body" });
  });
});

describe("what does not fit", () => {
  it("RE-26 names numbers that could not be kept, and gives the data as it was read", () => {
    const { data, meta } = read(makeWhole('{"id":9007199254740993}', "application/json"));
    expect(data).toEqual({ id: 9007199254740992 });
    expect(meta.waybill).toEqual({
      obtained: "body",
      violations: [
        { pointer: "/id", expected: "a number that can be kept exactly", found: "9007199254740993" },
      ],
    });
    expect(read(makeWhole('{"id":9007199254740992}', "application/json")).meta.waybill).toEqual({
      obtained: "body",
    });
  });

  it("RE-26 checks data against what its own status and media type declare", () => {
    const text = { type: "object", properties: { a: { $ref: "#/$defs/A" } }, required: ["a"] };
    const plan = makePlan({
      definitions: { A: { type: "string" }, Broken: { $ref: "#/nowhere" } },
      responses: [
        makeResponse("200", { "application/json": text, "application/x.v2+json": { type: "integer" } }),
        makeResponse("201", { "application/json": { type: "integer" } }),
        makeResponse("202", { "application/json": { type: "madness" } }),
        makeResponse("default", { "application/json": { type: "boolean" } }),
      ],
    });
    const violations = (body: string, status: number, type = "application/json") =>
      read(makeWhole(body, type, { status }), plan).meta.waybill?.violations;
    expect(violations('{"a":"x"}', 200)).toBeUndefined();
    expect(violations("1", 201)).toBeUndefined();
    expect(violations("1", 200, "application/x.v2+json")).toBeUndefined();
    expect(violations("1", 200)).toMatchObject([{ pointer: "" }]);
    expect(violations('{"a":1}', 200)).toMatchObject([{ pointer: "/a" }]);
    expect(violations('{"a":"x"}', 201)).toHaveLength(1);
    expect(violations("12345678901234567890", 200)).toHaveLength(2);
    for (const status of [202, 203]) expect(violations('"x"', status)).toBeUndefined();
    expect(
      read(makeWhole("1", "application/json"), makePlan({ responses: plan.responses.slice(1, 2) })).meta
        .waybill,
    ).toEqual({ obtained: "body" });
  });

  it("RE-26 reads what is declared as any type", () => {
    for (const type of ["*/*", "application/*"]) {
      const plan = makePlan({ responses: [makeResponse("200", { [type]: { type: "object" } })] });
      expect(read(makeWhole('{"a":1}'), plan).data).toEqual({ a: 1 });
    }
  });
});
