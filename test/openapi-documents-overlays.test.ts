import { describe, expect, it } from "vitest";
import { minimal, planOf, read } from "./openapi-document-reading.ts";

describe("overlays", () => {
  const document = minimal({ operationId: "getX", summary: "Old" });

  it("RE-25 renames, hides, patches, and changes what an operation is", async () => {
    const before = JSON.stringify(document);
    const api = await read(document, {
      overlays: [
        {
          document: {
            servers: [{ url: "https://new.example" }],
            paths: { "/y": { post: { operationId: "postY" } } },
          },
        },
        {
          operations: {
            getX: { name: "fetch", patch: { summary: null, deprecated: true } },
            "post /y": { readOnly: true },
          },
        },
      ],
    });
    expect(api.operations).toMatchObject([
      { name: "fetch", operationId: "getX", description: "GET /x", deprecated: true },
      { name: "postY", type: "query" },
    ]);
    expect(planOf(api, "fetch").servers[0]?.url).toBe("https://new.example");
    expect(JSON.stringify(document)).toBe(before);
    expect(
      (await read(document, { overlays: [{ operations: { getX: { hide: true } } }] })).operations,
    ).toEqual([]);
  });

  it("RE-25 refuses an overlay that names nothing, or gives a name twice", async () => {
    await expect(read(document, { overlays: [{ operations: { getXx: {} } }] })).rejects.toThrow(
      'The overlay names "getXx", which is no operation of the document. Near it: "getX"',
    );
    const two = {
      openapi: "3.1.0",
      paths: { "/a": { get: { operationId: "a" }, put: { operationId: "b" } } },
    };
    await expect(read(two, { overlays: [{ operations: { a: { name: "b" } } }] })).rejects.toThrow(
      'Two operations are named "b": GET /a and PUT /a',
    );
  });
});

describe("what overlays ask for", () => {
  const content = { "application/json": {}, "image/*": { schema: {} } };
  const document = minimal({ operationId: "getX", requestBody: { content } });
  const readWith = (overlay: object) => read(document, { overlays: [{ operations: { getX: overlay } }] });

  it("RE-25 refuses a name that is none", async () => {
    for (const name of ["", "a b", "-a", "a".repeat(201)]) {
      await expect(readWith({ name })).rejects.toThrow(/^The overlay names GET \/x .*at most 200\.$/);
    }
    expect((await readWith({ name: "a".repeat(200) })).operations).toHaveLength(1);
  });

  it("RE-25 refuses a media type that is not declared, and names those that are", async () => {
    await expect(readWith({ contentType: "text/plain" })).rejects.toThrow(
      'contentType "text/plain" of GET /x, which it does not have: declared are "application/json", "image/*".',
    );
    await expect(readWith({ contentType: "a/b", patch: { requestBody: null } })).rejects.toThrow(
      "takes no body",
    );
  });

  it("RE-25 sends a type of a range that is declared", async () => {
    const [operation] = (await readWith({ contentType: "image/png" })).operations;
    expect(operation?.plan().body?.content.map(({ mediaType }) => mediaType)).toEqual([
      ...["image/png", "application/json", "image/*"],
    ]);
  });
});
