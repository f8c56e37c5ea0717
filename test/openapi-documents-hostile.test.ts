import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cpuMs } from "./cpu-ms.ts";
import {
  accepts,
  answering,
  compileAll,
  minimal,
  planMinimal,
  planOf,
  read,
} from "./openapi-document-reading.ts";

describe("wrong and hostile documents", () => {
  it("RE-25 mends schemas that are wrong, and says so", async () => {
    const plan = await planMinimal({
      type: "object",
      required: true,
      properties: {
        a: { type: "float", minimum: "1" },
        b: { type: "string", pattern: "(", enum: "x" },
        c: { type: "whatever" },
        d: { type: "array", items: 5 },
        e: { $ref: "#/components/schemas/Missing" },
        f: { allOf: [], type: ["int", "null"] },
        g: 7,
      },
      additionalProperties: "yes",
    });
    expect(accepts(plan, { a: 0.5, b: "x", c: [], d: [1], e: 1, f: null, g: 1 })).toBe(true);
    expect(accepts(plan, { a: "1" })).toBe(false);
    expect(plan.notes.length).toBeGreaterThanOrEqual(9);
    expect(plan.notes.join()).toContain('"#/components/schemas/Missing" leads nowhere');
  });

  it("RE-25 takes references in circles, of everything that can refer", async () => {
    const api = await read({
      openapi: "3.0.0",
      paths: {
        "/a": { $ref: "#/paths/~1b" },
        "/b": { $ref: "#/paths/~1a" },
        "/c": {
          get: {
            operationId: "c",
            parameters: [{ $ref: "#/components/parameters/P" }],
            requestBody: { $ref: "#/components/requestBodies/B" },
            responses: {
              200: { $ref: "#/components/responses/R" },
              201: answering({ $ref: "#/components/schemas/S" }).responses[200],
            },
          },
        },
      },
      components: {
        parameters: { P: { $ref: "#/components/parameters/P" } },
        requestBodies: { B: { $ref: "#/components/requestBodies/B/x" } },
        responses: { R: { $ref: "#/components/responses/R" } },
        schemas: {
          S: { allOf: [{ $ref: "#/components/schemas/T" }] },
          T: { anyOf: [{ $ref: "#/components/schemas/S" }] },
        },
      },
    });
    expect(api.unusable.map(({ name }) => name)).toEqual(["/a", "/b"]);
    const plan = planOf(api, "c");
    expect(plan.parameters).toEqual([]);
    expect(plan.notes.join(" ")).toContain("leads in circles");
    expect(plan.notes.join(" ")).toContain("refers to itself without saying anything");
    expect(compileAll(plan)).toBe(1);
  });

  it("RE-25 takes objects that contain themselves", async () => {
    const node: Record<string, unknown> = {
      type: "object",
      required: ["n"],
      properties: { n: { type: "integer" } },
    };
    (node["properties"] as Record<string, unknown>)["next"] = node;
    const plan = await planMinimal(node);
    expect(accepts(plan, { n: 1, next: { n: 2, next: { n: 3 } } })).toBe(true);
    expect(accepts(plan, { n: 1, next: { n: 2, next: {} } })).toBe(false);
  });

  it.each(["2.0", "3.0.3", "3.1.0"])(
    "RE-25 keeps names such as __proto__ of a document of %s as names",
    async (version) => {
      const schema = JSON.parse(
        '{"type":"object","required":["__proto__"],"properties":{"__proto__":{"type":"integer"},"constructor":{"type":"string"}},"example":{"__proto__":1}}',
      );
      const start = version === "2.0" ? { swagger: version } : { openapi: version };
      const name = version === "2.0" ? "definitions" : "schemas";
      const schemas = JSON.parse(`{"__proto__":${JSON.stringify(schema)}}`);
      const content = {
        schema: { $ref: version === "2.0" ? "#/definitions/__proto__" : "#/components/schemas/__proto__" },
      };
      const plan = planOf(
        await read({
          ...start,
          paths: {
            "/x": {
              get: {
                responses: {
                  200: version === "2.0" ? content : { content: { "application/json": content } },
                },
              },
            },
          },
          ...(version === "2.0" ? { [name]: schemas } : { components: { [name]: schemas } }),
        }),
        "get/x",
      );
      expect(accepts(plan, JSON.parse('{"__proto__":1,"constructor":"a"}'))).toBe(true);
      expect(accepts(plan, JSON.parse('{"__proto__":"a"}'))).toBe(false);
      expect(accepts(plan, {})).toBe(false);
      expect(({} as Record<string, unknown>)["type"]).toBeUndefined();
    },
  );

  it("RE-25 takes any depth, long chains, and huge lists", async () => {
    let deep: Record<string, unknown> = { type: "string" };
    for (let i = 0; i < 100_000; i++) deep = i % 2 === 0 ? { properties: { a: deep } } : { allOf: [deep] };
    const schemas: Record<string, unknown> = {
      Deep: deep,
      Many: { enum: Array.from({ length: 15_000 }, (_, i) => `v${i}`) },
    };
    for (let i = 0; i < 5_000; i++) schemas[`C${i}`] = { $ref: `#/components/schemas/C${i + 1}` };
    schemas["C5000"] = { type: "integer" };
    for (let i = 0; i < 40; i++) {
      const next = { $ref: `#/components/schemas/W${i + 1}` };
      schemas[`W${i}`] = { anyOf: [next, next, { allOf: [next] }] };
    }
    schemas["W40"] = { type: "integer" };
    const refs = ["Deep", "Many", "C0", "W0"].map((name) => ({ $ref: `#/components/schemas/${name}` }));
    for (const openapi of ["3.0.0", "3.1.0"]) {
      const start = cpuMs();
      const plan = await planMinimal(
        { type: "array", prefixItems: refs, anyOf: refs.map((items) => ({ items })) },
        { openapi, components: { schemas } },
      );
      compileAll(plan);
      expect(cpuMs() - start).toBeLessThan(20_000);
      expect(plan.notes.join(" ")).toContain("too deep");
    }
  });

  it("RE-25 counts operations and bytes against their limits", async () => {
    const document = { openapi: "3.1.0", paths: { "/a": { get: {}, put: {} } } };
    expect((await read(document, { limits: { operations: 2 } })).operations).toHaveLength(2);
    await expect(read(document, { limits: { operations: 1 } })).rejects.toThrow(
      "more than 1 operations (limits.operations)",
    );
    const text = JSON.stringify(document);
    const fetchText = async () => text;
    const url = "https://a.example/x.json";
    expect((await read(url, { fetchText, limits: { documentBytes: text.length } })).operations).toHaveLength(
      2,
    );
    await expect(read(url, { fetchText, limits: { documentBytes: text.length - 1 } })).rejects.toThrow(
      "limits.documentBytes",
    );
  });

  it("RE-25 leaves out what is no operation, and keeps the rest", async () => {
    const api = await read({
      openapi: "3.1.0",
      paths: { "/a": 5, "/b": { get: null, put: {} }, "x-c": {}, d: { get: {} } },
    });
    expect(api.operations.map(({ name }) => name)).toEqual(["put/b"]);
    expect(api.unusable.map(({ name }) => name)).toEqual(["/a", "GET /b", "GET d"]);
    expect((await read({ openapi: "3.1.0" })).operations).toEqual([]);
  });
});

describe("what a document may reach", () => {
  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "documents-"));
    await mkdir(join(directory, "api"));
    await writeFile(join(directory, "secret.json"), '{"Secret":{"const":"secret"}}');
    await writeFile(join(directory, "api", "near.json"), '{"Near":{"const":"near"}}');
    await symlink(join(directory, "secret.json"), join(directory, "api", "link.json"));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const referring = (references: readonly string[]) =>
    JSON.stringify(minimal(answering({ anyOf: references.map(($ref) => ({ $ref })) })));

  it("RE-25 never reads a file outside the directory of the document", async () => {
    const outside = [
      "../secret.json#/Secret",
      "link.json#/Secret",
      "/etc/passwd",
      "file:///etc/passwd",
      "%2e%2e/secret.json#/Secret",
    ];
    const root = join(directory, "api", "openapi.json");
    await writeFile(
      root,
      referring([...outside, "http://127.0.0.1:9/x.json", "./near.json#/Near", "missing.json", "/dev/zero"]),
    );
    const asked: string[] = [];
    const warnings: string[] = [];
    const plan = planOf(
      await read(root, {
        fetchText: async (url) => {
          asked.push(url.href);
          return "{}";
        },
        warn: (message) => warnings.push(message),
      }),
      "get/x",
    );
    expect(asked).toEqual([]);
    expect(plan.notes.filter((note) => note.includes("leads nowhere"))).toHaveLength(8);
    expect(warnings.join("\n")).toContain("outside the directory of the document");
    expect(JSON.stringify(plan.definitions)).toContain("near");
    expect(JSON.stringify(plan)).not.toContain('"const":"secret"');
  });

  it("RE-25 only fetches from the origin of the document, and never reads files for it", async () => {
    const asked: string[] = [];
    const texts: Record<string, string> = {
      "https://a.example/v1/openapi.json": referring([
        ...["s.yaml#/S", "../t.json", "https://b.example/x.json", "http://a.example/x.json"],
        pathToFileURL(join(directory, "secret.json")).href,
      ]),
      "https://a.example/v1/s.yaml": "S: { $ref: '../t.json' }",
      "https://a.example/t.json": '{"type":"integer"}',
    };
    const fetchText = async (url: URL) => {
      asked.push(url.href);
      return texts[url.href] ?? "";
    };
    const plan = planOf(await read("https://a.example/v1/openapi.json", { fetchText }), "get/x");
    expect(asked.sort()).toEqual(Object.keys(texts).sort());
    expect(plan.notes).toHaveLength(3);
  });

  it("RE-25 counts files against their limit", async () => {
    const root = join(directory, "api", "two.json");
    await writeFile(root, referring(["near.json#/Near"]));
    expect((await read(root, { limits: { files: 2 } })).operations).toHaveLength(1);
    await expect(read(root, { limits: { files: 1 } })).rejects.toThrow(
      "refers to more than 1 files (limits.files)",
    );
  });

  it("RE-25 reads a document that is given as an object without any files", async () => {
    const plan = await planMinimal({ $ref: "near.json#/Near" });
    expect(plan.notes.join()).toContain("no place that other files could be relative to");
    expect(accepts(plan, 1)).toBe(true);
  });
});
