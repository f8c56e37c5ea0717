import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { createResultFormat } from "../src/formats/index.ts";
import { type Executor, OperationRegistry } from "../src/index.ts";
import { createHttpHandler, serveHttp, type ToOpenApiOptions, toOpenApi } from "../src/openapi/index.ts";
import { query } from "./make-operation.ts";
import { REFUSED, refusedOperations, toldOf } from "./refused-schemas.ts";
import { HARDENED } from "./run-node.ts";

const registry = new OperationRegistry([query("a.b", () => 1)]);

/** Whatever takes options of a document. */
const takers: readonly (readonly [string, (executor: Executor, options: object) => unknown])[] = [
  ["toOpenApi", toOpenApi],
  ["createHttpHandler", createHttpHandler],
  ["serveHttp", serveHttp],
];

const refusalOf = async (take: () => unknown): Promise<unknown> => {
  try {
    return await take();
  } catch (thrown) {
    return thrown;
  }
};

describe("options of a document", () => {
  it("RE-30 say what the API is called, where it is and what its paths begin with", () => {
    const document = toOpenApi(registry, {
      info: { title: "Shop", version: "2", description: "Sells." },
      servers: ["https://shop.example/v1"],
      basePath: "/v1/api",
    });
    expect(document.info).toEqual({ title: "Shop", version: "2", description: "Sells." });
    expect(document.servers).toEqual([{ url: "https://shop.example/v1" }]);
    expect(Object.keys(document.paths)).toContain("/v1/api/a/b");
  });

  it("RE-30 lead from where the document is to the API, wherever both are mounted", () => {
    const [server] = toOpenApi(registry).servers;
    expect(new URL(server?.url ?? "", "https://host/sub/openapi.json").href).toBe("https://host/sub/");
    expect(new URL(server?.url ?? "", "https://host/openapi.json").href).toBe("https://host/");
  });

  describe.each(takers)("of %s", (name, take) => {
    it.each(["", "/", "/api/", "api", "/a//b", "/a/../b", "/{x}", "/a?b", "/a#b", "/%2e", 5])(
      "RE-30 refuse the base path %j",
      async (basePath) => {
        const refusal = await refusalOf(() => take(registry, { basePath }));
        expect(String(refusal)).toContain("TypeError: basePath must be a path");
      },
    );

    it.each<[object, string]>([
      [{ tilte: "x" }, 'There is no option "tilte"'],
      [{ sevrers: [] }, 'did you mean "servers"?'],
      [{ info: "Shop" }, "info must be an object with any of: title, version, description."],
      [{ info: { name: "Shop" } }, 'There is no option "info.name"'],
      [{ info: { version: 2 } }, "info.version must be text; it is 2."],
      [{ servers: "https://a.example" }, "servers must be a list of addresses"],
      [{ servers: [{ url: "/" }] }, "servers must be a list of addresses"],
      [{ basePath: "/docs" }, 'basePath must not begin with "/docs"'],
      [{ formats: "plain" }, "formats must be a list of formats"],
      [{ formats: [{ name: "data" }] }, "formats must have names"],
      [{ examples: [] }, "examples must be an object"],
      [{ onWarning: true }, "onWarning must be a function; it is true."],
      [{ auth: { apiKey: "x" } }, 'There is no option "auth.apiKey"'],
    ])("RE-30 say what is wrong with %j", async (options, message) => {
      const refusal = await refusalOf(() => take(registry, options));
      expect(refusal).toBeInstanceOf(TypeError);
      expect((refusal as TypeError).message).toContain(message);
    });

    it.each([undefined, null, {}, [], { list: () => [] }])("RE-30 are not taken for %j", async (executor) => {
      const refusal = await refusalOf(() => take(executor as never, {}));
      expect(String(refusal)).toContain(`${name} takes what can run operations first`);
    });
  });

  it.each<[ToOpenApiOptions, string]>([
    [{ identity: "me" as never }, "identity must be an object"],
    [{ auth: { bearer: "x" as never } }, "auth.bearer must be true or false"],
    [{ auth: { apiKeyHeader: "x key" } }, "auth.apiKeyHeader must be the name of a header"],
  ])("RE-30 of toOpenApi alone say what is wrong with %j", (options, message) => {
    expect(() => toOpenApi(registry, options)).toThrow(message);
  });
});

describe("operations whose schemas are refused", () => {
  const formats = [createResultFormat("tool-envelope"), createResultFormat("status-envelope")];

  it("RE-30 are described as taking anything, with a warning for each, beside the others", async () => {
    const warnings: string[] = [];
    const onWarning = (message: string): unknown => warnings.push(message);
    const refused = new OperationRegistry(refusedOperations());
    const document = toOpenApi(refused, { formats, onWarning });
    const formatted = warnings.filter((message) => message.startsWith("The format "));
    expect(toldOf(warnings.filter((message) => !formatted.includes(message)))).toEqual(REFUSED);
    const { paths } = document;
    expect(Object.keys(paths)).toHaveLength(refusedOperations().length + 4);
    expect(paths["/api/fine/one"]?.get?.parameters).toHaveLength(1);
    for (const name of ["input", "loop", "pattern", "reading", "stream"]) {
      const { post } = paths[`/api/bad/${name}`] ?? {};
      expect(post?.requestBody).toMatchObject({ content: { "application/json": { schema: {} } } });
      expect(post?.["x-waybill"]).not.toHaveProperty("inputSchema");
    }
    expect(paths["/api/bad/error"]?.post?.["x-waybill"]).toMatchObject({
      errors: [{ code: "NO", httpStatus: 409 }],
    });
    if (HARDENED) return;
    const copy = JSON.parse(JSON.stringify(document)) as Record<string, unknown>;
    expect((await new Validator().validate(copy)).errors).toBeUndefined();
  });

  it("RE-30 are served beside the others, and their calls say what is wrong", async () => {
    const warnings: string[] = [];
    const handler = createHttpHandler(new OperationRegistry(refusedOperations()), {
      onWarning: (message) => warnings.push(message),
    });
    const get = (path: string) => handler.fetch(new Request(`http://localhost${path}`));
    for (const _ of [1, 2]) expect((await get("/openapi.json")).status).toBe(200);
    expect(toldOf(warnings)).toEqual(REFUSED);
    expect(await (await get("/api/fine/one?a=x")).json()).toBe(1);
    for (const name of ["input", "loop", "pattern", "reading"]) {
      const request = new Request(`http://localhost/api/bad/${name}`, { method: "POST" });
      const response = await handler.fetch(request);
      expect([name, response.status]).toEqual([name, 501]);
    }
    await handler.close();
  });
});
