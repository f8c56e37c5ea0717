import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isCallError } from "../src/index.ts";
import type { OutgoingRequest } from "./openapi-request-sink.ts";
import {
  ALWAYS,
  anyText,
  buildRequest,
  headerOf,
  ownHeaders,
  send,
  sendInput,
  splitTarget,
  useRequestSink,
} from "./openapi-request-sink.ts";
import type { OperationPlan, ParameterPlan, ParameterStyle } from "./operation-plans.ts";
import { makeBody, makeParameter, makePlan } from "./operation-plans.ts";
import { runs, scaled } from "./runs.ts";

useRequestSink();

const anyValue = fc.oneof(
  { weight: 3, arbitrary: anyText },
  fc.array(anyText, { maxLength: 3 }),
  fc.dictionary(anyText, anyText, { maxKeys: 3, noNullPrototype: true }),
);

const STYLES: Readonly<Record<"path" | "query" | "header" | "cookie", readonly ParameterStyle[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form", "cookie"],
};

/** Every way to write a parameter. */
const WAYS = Object.entries(STYLES).flatMap(([place, styles]) =>
  styles.flatMap((style) =>
    [false, true].flatMap((explode) =>
      [undefined, "application/json", "reserved"].map((extra) => ({ place, style, explode, extra })),
    ),
  ),
);

function parameterOf({ place, style, explode, extra }: (typeof WAYS)[number]): ParameterPlan {
  return makeParameter({
    name: "x-Val",
    in: place as ParameterPlan["in"],
    style,
    explode,
    required: true,
    allowReserved: extra === "reserved",
    contentType: extra === "reserved" ? undefined : extra,
  });
}

describe("any text in any parameter", () => {
  it.each(WAYS)(
    "RE-25 is one request as declared, or refused: $place $style $explode $extra",
    async (way) => {
      const isPath = way.place === "path";
      const plan = makePlan({
        path: isPath ? "/pets/{x-Val}/toys/{x-Val}.json" : "/pets/toys",
        parameters: [parameterOf(way)],
      });
      await fc.assert(
        fc.asyncProperty(anyValue, async (value) => {
          const request = await sendInput(plan, { "x-Val": value });
          if (request === undefined) return;
          const { path, query } = splitTarget(request);
          expect(path.startsWith("/base/pets/")).toBe(true);
          expect(path.split("/")).toHaveLength(isPath ? 6 : 4);
          if (way.place !== "query") expect(query).toBe("");
          const declared = way.place === "header" ? ["x-val"] : way.place === "cookie" ? ["cookie"] : [];
          expect(declared).toEqual(expect.arrayContaining(ownHeaders(request)));
          expect(request.body).toHaveLength(0);
        }),
        runs(60),
      );
    },
  );

  it("RE-25 never changes another parameter", async () => {
    const places = ["path", "query", "header", "cookie"] as const;
    const parameters = places.flatMap((place) => [
      makeParameter({ name: `${place}-a`, in: place, required: true }),
      makeParameter({ name: `${place}-b`, in: place, required: true }),
    ]);
    const plan = makePlan({ path: "/{path-a}/{path-b}", parameters });
    const fixed = Object.fromEntries(parameters.map(({ key }) => [key, "same"]));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), anyText, async (place, text) => {
        const request = await sendInput(plan, { ...fixed, [`${place}-a`]: text });
        if (request === undefined) return;
        const { path, query } = splitTarget(request);
        expect(path.split("/")).toHaveLength(4);
        expect(path.endsWith("/same")).toBe(true);
        expect([...new URLSearchParams(query).keys()]).toEqual(["query-a", "query-b"]);
        expect(new URLSearchParams(query).get("query-b")).toBe("same");
        expect(ownHeaders(request)).toEqual(["cookie", "header-a", "header-b"]);
        expect(headerOf(request, "header-b")).toBe("same");
        const cookies = headerOf(request, "cookie")?.split("; ") ?? [];
        expect(cookies.map((cookie) => cookie.split("=")[0])).toEqual(["cookie-a", "cookie-b"]);
      }),
      runs(400),
    );
  });
});

describe("any text in a document", () => {
  /** One request below the base path with known headers, or an error that says why not. */
  async function expectTame(
    plan: OperationPlan,
    input: unknown,
    headers: readonly string[],
  ): Promise<boolean> {
    let request: OutgoingRequest;
    try {
      request = buildRequest(plan, input);
    } catch (error) {
      expect(isCallError(error) && error.code).toMatch(/^(?:VALIDATION_ERROR|NOT_IMPLEMENTED)$/);
      return false;
    }
    const [first, ...more] = await send(request);
    expect(more).toEqual([]);
    if (first === undefined) throw new Error("Nothing arrived.");
    expect(splitTarget(first).path.startsWith("/base/")).toBe(true);
    expect(headers).toEqual(expect.arrayContaining(ownHeaders(first)));
    return true;
  }

  it("RE-25 names a parameter, and adds nothing else", async () => {
    const places = fc.constantFrom("path", "query", "header", "cookie", "querystring");
    const styles = fc.constantFrom(...Object.values(STYLES).flat());
    await fc.assert(
      fc.asyncProperty(places, styles, anyText, async (place, style, name) => {
        const parameter = makeParameter({ name, key: "it", in: place as ParameterPlan["in"], style });
        const plan = makePlan({ path: `/x/{${name}}`, parameters: [parameter] });
        const usual = [...ALWAYS, "content-type", "cookie"].includes(name.toLowerCase());
        fc.pre(!(usual && place === "header"));
        await expectTame(plan, { it: "v" }, ["cookie", name.toLowerCase()]);
      }),
      runs(500),
    );
  });

  it("RE-25 is a path, and leads nowhere else", async () => {
    let sent = 0;
    await fc.assert(
      fc.asyncProperty(anyText, async (path) => {
        if (await expectTame(makePlan({ path }), {}, [])) sent++;
      }),
      runs(300),
    );
    expect(sent).toBeGreaterThan(scaled(100));
  });

  it("RE-25 is a media type, and adds no header", async () => {
    const begun = fc.constantFrom(
      "",
      "application/json",
      "multipart/form-data; a=",
      "text/plain;",
      "image/*",
    );
    const value = fc.constantFrom("text", { a: "b" }, { base64: "QQ==" });
    await fc.assert(
      fc.asyncProperty(begun, anyText, value, async (start, text, body) => {
        const mediaType = start + text;
        const responses = [{ status: "200", headers: {}, content: [{ mediaType }] }];
        const plan = makePlan({ method: "POST", path: "/x", body: makeBody(mediaType), responses });
        await expectTame(plan, { body }, ["content-length", "content-type"]);
      }),
      runs(300),
    );
  });
});
