import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  anyText,
  headerOf,
  ownHeaders,
  sendInput,
  useRequestSink,
  wholeText,
} from "./openapi-request-sink.ts";
import type { OperationPlan } from "./operation-plans.ts";
import { makeBody, makeParameter, makePlan, type PartialParameter } from "./operation-plans.ts";
import type { RawRequest } from "./tcp-sink.ts";

useRequestSink();

function planOf(parameter: PartialParameter): OperationPlan {
  const path = parameter.in === "path" ? `/x/{${parameter.name}}` : "/x";
  return makePlan({ path, parameters: [makeParameter(parameter)] });
}

describe("what arrives", () => {
  it("RE-25 is the text that was given, in a path", async () => {
    const usual = wholeText.filter((text) => !["", ".", ".."].includes(text));
    await fc.assert(
      fc.asyncProperty(usual, async (text) => {
        const request = await sendInput(planOf({ name: "id", in: "path" }), { id: text });
        expect(decodeURIComponent(request?.target.slice("/base/x/".length) ?? "")).toBe(text);
      }),
    );
  });

  it("RE-25 is the text that was given, in a query", async () => {
    await fc.assert(
      fc.asyncProperty(
        wholeText,
        fc.array(wholeText, { minLength: 1, maxLength: 3 }),
        async (name, texts) => {
          const request = await sendInput(planOf({ name, key: "q", in: "query" }), { q: texts });
          const query = new URLSearchParams(request?.target.split("?")[1]);
          expect([...query]).toEqual(texts.map((text) => [name, text]));
        },
      ),
    );
  });

  it("RE-25 is the text that was given, in a header, wherever a header can hold it", async () => {
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        const request = await sendInput(planOf({ name: "X-Text", in: "header" }), { "X-Text": text });
        const holds = /^[\t -~]*$/.test(text) && text === text.trim();
        expect(request === undefined ? undefined : headerOf(request, "x-text")).toBe(
          holds ? text : undefined,
        );
      }),
    );
  });

  it("RE-25 is any text, in a header described as JSON", async () => {
    const plan = planOf({ name: "X-Text", in: "header", contentType: "application/json" });
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        const request = await sendInput(plan, { "X-Text": text });
        expect(JSON.parse((request && headerOf(request, "x-text")) ?? "null")).toBe(text);
      }),
    );
  });

  it("RE-25 is the text that was given, in a cookie", async () => {
    await fc.assert(
      fc.asyncProperty(wholeText, async (text) => {
        const request = await sendInput(planOf({ name: "sid", in: "cookie" }), { sid: text });
        const [cookie = "", ...more] = (request && headerOf(request, "cookie"))?.split(";") ?? [];
        expect(more).toEqual([]);
        expect(decodeURIComponent(cookie.slice("sid=".length))).toBe(text);
      }),
    );
  });
});

/** The parser of multipart bodies takes byte order marks away. */
const unmarked = wholeText.map((text) => text.replaceAll("\ufeff", ""));

function fieldsOf(text: fc.Arbitrary<string>) {
  const value = fc.oneof(text, fc.array(text, { maxLength: 3 }));
  return fc.dictionary(text, value, { maxKeys: 4, noNullPrototype: true });
}

/** Names with what each was given, lists repeated. */
function pairsOf(form: Readonly<Record<string, string | string[]>>): [string, string][] {
  return Object.entries(form).flatMap(([name, value]) =>
    [value].flat().map((text): [string, string] => [name, text]),
  );
}

describe("bodies that arrive", () => {
  it("RE-25 are the fields of a form", async () => {
    const mediaType = "application/x-www-form-urlencoded";
    const plan = makePlan({ method: "POST", path: "/x", body: makeBody(mediaType) });
    await fc.assert(
      fc.asyncProperty(fieldsOf(wholeText), async (form) => {
        const request = await sendInput(plan, { body: form });
        if (request === undefined) throw new Error("The form was refused.");
        expect(ownHeaders(request)).toEqual(["content-length", "content-type"]);
        expect(headerOf(request, "content-type")).toBe(mediaType);
        expect([...new URLSearchParams(request.body.toString())]).toEqual(pairsOf(form));
      }),
    );
  });

  it("RE-25 are the fields of a multipart form, read by another's parser", async () => {
    const plan = makePlan({ method: "POST", path: "/x", body: makeBody("multipart/form-data") });
    await fc.assert(
      fc.asyncProperty(fieldsOf(unmarked), async (form) => {
        const request = await sendInput(plan, { body: form });
        if (request === undefined) throw new Error("The form was refused.");
        const found = [...(await parseForm(request))];
        const expected = pairsOf(form);
        expect(found.map(([name, text]) => [unescapeName(name), text])).toEqual(
          expected.map(([name, text]) => [unescapeName(name), text]),
        );
      }),
    );
  });

  it("RE-25 are files with their bytes, names and types", async () => {
    const plan = makePlan({ method: "POST", path: "/x", body: makeBody("multipart/form-data") });
    const bytes = fc.uint8Array({ maxLength: 64 });
    await fc.assert(
      fc.asyncProperty(bytes, unmarked, async (content, filename) => {
        const file = { base64: Buffer.from(content).toString("base64"), filename, contentType: "image/png" };
        const request = await sendInput(plan, { body: { file, raw: content, more: "x" } });
        if (request === undefined) throw new Error("The file was refused.");
        const form = await parseForm(request);
        expect([...form.keys()]).toEqual(["file", "raw", "more"]);
        const found = form.get("file") as File;
        expect(new Uint8Array(await found.arrayBuffer())).toEqual(content);
        expect(unescapeName(found.name)).toBe(unescapeName(filename));
        expect(found.type).toBe("image/png");
        expect(new Uint8Array(await (form.get("raw") as File).arrayBuffer())).toEqual(content);
        expect(form.get("more")).toBe("x");
      }),
    );
  });

  it("RE-25 are the JSON that was given", async () => {
    const plan = makePlan({ method: "POST", path: "/x", body: makeBody("application/json; charset=utf-8") });
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const request = await sendInput(plan, { body: value });
        expect(JSON.parse(request?.body.toString() ?? "")).toEqual(JSON.parse(JSON.stringify(value)));
        expect(request && headerOf(request, "content-type")).toBe("application/json; charset=utf-8");
      }),
    );
  });
});

function parseForm(request: RawRequest): Promise<FormData> {
  const headers = { "content-type": headerOf(request, "content-type") ?? "" };
  return new Response(new Uint8Array(request.body), { headers }).formData();
}

/** Names are escaped as browsers do it, which cannot be told from names that are written so. */
function unescapeName(name: string): string {
  return name.replaceAll("%22", '"').replace(/%0d/gi, "\r").replace(/%0a/gi, "\n");
}
