import { describe, expect, it } from "vitest";
import { makeBody, makePlan } from "../../../../test/operation-plans.ts";
import type { MediaPlan } from "../plan.ts";
import { createRequestBuilder } from "./request-builder.ts";

const FORM = "application/x-www-form-urlencoded";

function draftOf(mediaType: string, body: unknown, media: Partial<MediaPlan> = {}, limits = {}) {
  const plan = makePlan({ method: "POST", body: makeBody(mediaType, media, true) });
  return createRequestBuilder(plan, { limits })({ body });
}

/** The body as text, and its type. */
function write(
  mediaType: string,
  body: unknown,
  media: Partial<MediaPlan> = {},
): [string, string | undefined] {
  const draft = draftOf(mediaType, body, media);
  return [Buffer.from(draft.body ?? "").toString("latin1"), draft.headers["content-type"]];
}

/** The parts of a multipart body, each as text. */
function partsOf(body: unknown, media: Partial<MediaPlan> = {}, mediaType = "multipart/form-data"): string[] {
  const [text, type = ""] = write(mediaType, body, media);
  const boundary = /; boundary=(waybill-[0-9a-f]{32})$/.exec(type)?.[1];
  const parts = text.split(`--${boundary}`);
  expect(parts.at(-1)).toBe("--\r\n");
  return parts.slice(1, -1).map((part) => part.replace(/^\r\n|\r\n$/g, ""));
}

describe("JSON bodies", () => {
  it("RE-25 are what was given, of the very type that is declared", () => {
    expect(write("application/vnd.pet+json; v=1", { a: [1, null] })).toEqual([
      '{"a":[1,null]}',
      "application/vnd.pet+json; v=1",
    ]);
    expect(write("application/json", null)).toEqual(["null", "application/json"]);
    expect(write("application/json", { at: new Date(0), no: undefined })[0]).toBe(
      '{"at":"1970-01-01T00:00:00.000Z"}',
    );
  });

  it.each([
    [{ a: [1n] }, "/a/0", "bigint"],
    [{ "x/y": Number.NaN }, "/x~1y", "NaN"],
    [[undefined], "/0", "undefined"],
    [{ b: new Uint8Array(2) }, "/b", "bytes"],
    [{ m: new Map() }, "/m", "instance"],
  ])("RE-25 that JSON cannot hold are refused by their pointer: %#", (body, pointer, why) => {
    const message = expect.stringMatching(`^The input "body" at "${pointer}" is .*${why}`);
    expect(() => write("application/json", body)).toThrow(
      expect.objectContaining({ code: "VALIDATION_ERROR", message }),
    );
  });

  it("RE-25 may be lines", () => {
    expect(write("application/x-ndjson", [{ a: 1 }, 2])[0]).toBe('{"a":1}\n2\n');
    expect(write("application/json-seq", [1])[0]).toBe("\u001e1\n");
    expect(() => write("application/jsonl", { a: 1 })).toThrow("must be a list");
  });

  it("RE-25 are left out when absent, and asked for when required", () => {
    const optional = makePlan({ method: "POST", body: makeBody("application/json") });
    const draft = createRequestBuilder(optional, { limits: {} })({});
    expect(draft.body).toBeUndefined();
    expect(draft.headers).not.toHaveProperty("content-type");
    expect(() => draftOf("application/json", undefined)).toThrow('The input "body" is missing.');
  });
});

describe("forms", () => {
  it("RE-25 repeat lists and write objects as JSON", () => {
    const [text] = write(FORM, { a: "x y&z", b: [1, 2], c: { d: true }, e: null, f: undefined });
    expect(text).toBe("a=x%20y%26z&b=1&b=2&c=%7B%22d%22%3Atrue%7D");
  });

  it("RE-25 follow the encoding of each property", () => {
    const encoding = {
      list: { style: "form", explode: false },
      deep: { style: "deepObject", explode: true },
      json: { contentType: "application/json" },
      pipes: { style: "pipeDelimited" },
      open: { allowReserved: true },
    } as const;
    const value = { list: [1, 2], deep: { a: { b: 1 } }, json: [1], pipes: ["a", "b"], open: "a/b&c" };
    const [text] = write(FORM, value, { encoding });
    expect(decodeURIComponent(text)).toBe("list=1,2&deep[a][b]=1&json=[1]&pipes=a|b&open=a/b&c");
    expect(text).toContain("open=a/b%26c");
  });

  it("RE-25 join lists with the character that Swagger 2 joins with", () => {
    const encoding = { tabs: { separator: "\t" }, commas: { separator: "," } };
    expect(write(FORM, { tabs: ["a", "b"], commas: [1, 2] }, { encoding })[0]).toBe("tabs=a%09b&commas=1,2");
  });

  it("RE-25 are objects", () => {
    expect(() => write(FORM, [1])).toThrow("must be an object");
    expect(() => write(FORM, { a: new Uint8Array(1) })).toThrow("is bytes");
    expect(() => write(FORM, { a: new Blob(["a"]) })).toThrow("is a Blob");
  });
});

describe("multipart bodies", () => {
  it("RE-25 have a part for each value, JSON for objects", () => {
    expect(partsOf({ a: "x", b: [1, true], c: { d: 1 }, e: null })).toEqual([
      'Content-Disposition: form-data; name="a"\r\n\r\nx',
      'Content-Disposition: form-data; name="b"\r\n\r\n1',
      'Content-Disposition: form-data; name="b"\r\n\r\ntrue',
      'Content-Disposition: form-data; name="c"\r\nContent-Type: application/json\r\n\r\n{"d":1}',
    ]);
    expect(partsOf({})).toEqual([]);
  });

  it("RE-25 have the types and headers that the encoding says", () => {
    const encoding = {
      a: {
        contentType: "text/csv",
        headers: { "X-Kind": { const: "table" }, "Content-Type": { const: "x/y" } },
      },
      b: { contentType: "image/*, image/png, image/gif" },
      c: { contentType: "application/json", headers: { "X-Bad": { const: "a\r\nb" } } },
    };
    const [a, b, c] = partsOf({ a: "1,2", b: new Uint8Array([65]), c: "x" }, { encoding });
    expect(a).toBe(
      'Content-Disposition: form-data; name="a"\r\nContent-Type: text/csv\r\nX-Kind: table\r\n\r\n1,2',
    );
    expect(b).toBe(
      'Content-Disposition: form-data; name="b"; filename="file"\r\nContent-Type: image/png\r\n\r\nA',
    );
    expect(c).toBe('Content-Disposition: form-data; name="c"\r\nContent-Type: application/json\r\n\r\n"x"');
  });

  it("RE-25 send text as a file where the schema says so", () => {
    const schema = { $ref: "#/$defs/Upload" };
    const body = makeBody("multipart/form-data", { schema });
    const file = { type: "string", format: "binary" };
    const definitions = { Upload: { properties: { file, files: { type: "array", items: file } } } };
    const build = createRequestBuilder(makePlan({ method: "POST", body, definitions }), { limits: {} });
    const text = Buffer.from(build({ body: { file: "x", files: ["y"] } }).body ?? "").toString();
    expect(text.match(/; filename="file"/g)).toHaveLength(2);
  });

  it("RE-25 join lists in one part where the encoding says so", () => {
    const encoding = {
      pipes: { separator: "|" },
      commas: { style: "form", explode: false },
      spaces: { style: "spaceDelimited" },
      each: { style: "form" },
    } as const;
    const list = ["a", 1];
    const parts = partsOf({ pipes: list, commas: list, spaces: list, each: list, none: list }, { encoding });
    expect(parts.map((part) => part.replace(/^.*name="(.*)"\r\n\r\n/, "$1="))).toEqual([
      ...["pipes=a|1", "commas=a,1", "spaces=a 1", "each=a", "each=1", "none=a", "none=1"],
    ]);
    expect(partsOf({ pipes: [] }, { encoding })).toEqual([]);
    expect(() => partsOf({ pipes: ["a|b"] }, { encoding })).toThrow("which separates its parts");
  });

  it("RE-25 send text that stands for bytes as it is, and say that it does", () => {
    const coded = { type: "string", contentMediaType: "image/png", contentEncoding: "base64" };
    const schema = { properties: { a: coded, b: coded, c: { type: "array", items: coded } } };
    const encoding = { b: { contentType: "image/png" } };
    const typed = (name: string, type: string) =>
      `Content-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\n\r\naGk=`;
    expect(partsOf({ a: "aGk=", b: "aGk=", c: ["aGk="] }, { schema, encoding })).toEqual([
      typed("a", "application/octet-stream"),
      typed("b", "image/png"),
      typed("c", "application/octet-stream"),
    ]);
  });

  it("RE-25 refuse what cannot be read at once, and name what can", () => {
    for (const file of [new Blob(["a"]), new File(["a"], "a.txt")]) {
      expect(() => partsOf({ file })).toThrow(/^The input "body" at "\/file" is a Blob.*Uint8Array.*base64/);
      expect(() => partsOf({ file: [file] })).toThrow('"/file/0" is a Blob');
      expect(() => write("image/png", file)).toThrow(/is a Blob.*Uint8Array/);
      expect(() => write("*/*", file)).toThrow("is a Blob");
      expect(() => write("text/plain", file)).toThrow("is a Blob");
      expect(() => write("application/json", { file })).toThrow('"/file" is a Blob');
    }
  });

  it("RE-25 cannot be broken out of", () => {
    const [part = "", ...more] = partsOf({
      'a"\r\nX: 1': { base64: "QQ==", filename: 'f"\r\n\r\nevil', contentType: "text/plain" },
    });
    expect(more).toEqual([]);
    expect(part.split("\r\n")[0]).toBe(
      'Content-Disposition: form-data; name="a%22%0D%0AX: 1"; filename="f%22%0D%0A%0D%0Aevil"',
    );
    for (const contentType of ["text/plain\r\nX: 1", "x", "image/*", 'a/b; c="\r\n"', 7]) {
      expect(() => partsOf({ a: { base64: "", contentType } })).toThrow('"body" at "/a/contentType" must be');
    }
  });

  it("RE-25 without names are described by their place (OpenAPI 3.2)", () => {
    const media = {
      prefixEncoding: [{ contentType: "application/json" }, { contentType: "image/png" }],
      itemEncoding: { contentType: "text/csv", headers: { "X-Kind": { const: "table" } } },
    };
    expect(partsOf(["a", { base64: "QQ==" }, "1,2", "3"], media, "multipart/mixed")).toEqual([
      'Content-Type: application/json\r\n\r\n"a"',
      "Content-Type: image/png\r\n\r\nA",
      "Content-Type: text/csv\r\nX-Kind: table\r\n\r\n1,2",
      "Content-Type: text/csv\r\nX-Kind: table\r\n\r\n3",
    ]);
    const binary = { type: "string", format: "binary" };
    const octets = "Content-Type: application/octet-stream\r\n\r\nx";
    expect(partsOf(["x"], { itemSchema: binary }, "multipart/mixed")).toEqual([octets]);
    expect(
      partsOf(["x", "x"], { schema: { prefixItems: [true], items: binary } }, "multipart/mixed"),
    ).toEqual(["\r\nx", octets]);
  });

  it("RE-25 without names that are lists are one part each", () => {
    expect(partsOf([[1, 2], null, "x"], {}, "multipart/mixed")).toEqual([
      "Content-Type: application/json\r\n\r\n[1,2]",
      "\r\nx",
    ]);
  });

  it("RE-25 of other types have no names", () => {
    const file = { base64: "QQ==", filename: "a.bin" };
    expect(partsOf([{ a: 1 }, file], {}, "multipart/mixed")).toEqual([
      'Content-Type: application/json\r\n\r\n{"a":1}',
      'Content-Disposition: attachment; filename="a.bin"\r\nContent-Type: application/octet-stream\r\n\r\nA',
    ]);
    expect(write('multipart/related; type="a/b"; boundary=x', {})[1]).toMatch(
      /^multipart\/related; type="a\/b"; boundary=waybill-[0-9a-f]{32}$/,
    );
    expect(() => partsOf([1])).toThrow("must be an object");
  });
});

describe("other bodies", () => {
  it("RE-26 are text", () => {
    expect(write("text/plain", "hi")).toEqual(["hi", "text/plain"]);
    expect(write("text/csv; header=present", "a,b")).toEqual(["a,b", "text/csv; header=present"]);
    expect(write("application/xml", "<a/>")).toEqual(["<a/>", "application/xml"]);
    expect(write("text/plain", 7)[0]).toBe("7");
    expect(() => write("application/xml", { a: 1 })).toThrow("must be XML, as text");
    expect(() => write("text/plain", "\ud800")).toThrow("surrogate");
  });

  it("RE-26 are bytes", () => {
    for (const body of [
      new Uint8Array([0xc3, 0xa9]),
      "é",
      { base64: "w6k=" },
      new Uint8Array([0xc3, 0xa9]).buffer,
    ]) {
      expect(write("image/png", body)).toEqual(["\u00c3\u00a9", "image/png"]);
    }
    expect(write("image/png", new Uint8Array([1, 2, 3, 4]).subarray(1, 3))[0]).toBe("\u0002\u0003");
    for (const base64 of ["w6k", "w6k=\n", "****", "w7k_"]) {
      expect(() => write("image/png", { base64 })).toThrow('"body" at "/base64" is not valid base64');
    }
    for (const body of [{ a: 1 }, [1], 7, null])
      expect(() => write("image/png", body)).toThrow("must be bytes");
  });

  it("RE-26 of a range of types are of the type that is given", () => {
    expect(write("image/*", { base64: "QQ==", contentType: "image/gif" })).toEqual(["A", "image/gif"]);
    expect(write("*/*", new Uint8Array([65]))).toEqual(["A", "application/octet-stream"]);
    expect(write("*/*", { a: 1 })).toEqual(['{"a":1}', "application/json"]);
  });

  it("RE-25 of a type that is not quite one are sent as it says", () => {
    expect(write("application/json; charset=utf-8;", [1])).toEqual([
      "[1]",
      "application/json; charset=utf-8;",
    ]);
    expect(write("json", [1])).toEqual(["[1]", "json"]);
  });

  it("RE-25 of a type that is none are refused", () => {
    expect(() => write("a/b\r\nX: 1", "x")).toThrow(expect.objectContaining({ code: "NOT_IMPLEMENTED" }));
  });
});
