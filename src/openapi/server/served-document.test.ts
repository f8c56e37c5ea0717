import { describe, expect, it } from "vitest";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { ServedDocument, toOpenApi } from "./to-openapi.ts";

const many = (length: number): readonly AnyOperation[] =>
  Array.from({ length }, (_, i) =>
    defineOperation({
      namespace: "many",
      name: `tool${i}`,
      version: "1.0.0",
      type: i % 2 === 0 ? "query" : "mutation",
      description: `Does ${i}.`,
      inputSchema: { type: "object", properties: { n: { type: "integer" }, mode: { enum: ["a", `b${i}`] } } },
      handler: () => i,
    }),
  );

const textOf = async (document: ServedDocument): Promise<string> =>
  String((await document.answer(undefined, ORIGIN)).body);

const ORIGIN = "http://127.0.0.1:4100";

describe("ServedDocument", () => {
  it("RE-30 lets others have their turn while it describes thousands of operations, and says what toOpenApi says", async () => {
    const registry = new OperationRegistry(many(3_000));
    let turns = 0;
    const others = setInterval(() => turns++, 1);
    const text = await textOf(new ServedDocument(registry, {}));
    clearInterval(others);
    expect(turns).toBeGreaterThan(3);
    const document = toOpenApi(registry);
    expect(JSON.parse(text)).toEqual({ ...document, servers: [{ url: ORIGIN }] });
  });

  it("RE-30 is written once for all who ask at the same time", async () => {
    const document = new ServedDocument(new OperationRegistry(many(20)), {});
    const [first, second] = await Promise.all([
      document.answer(undefined, ORIGIN),
      document.answer(undefined, ORIGIN),
    ]);
    expect(second.body).toBe(first.body);
    expect((await document.answer(undefined, ORIGIN)).body).toBe(first.body);
    expect(second.headers["etag"]).toBe(first.headers["etag"]);
  });

  it("RE-30 forgets one that is being written when operations change", async () => {
    const registry = new OperationRegistry(many(3_000));
    const document = new ServedDocument(registry, {});
    const stop = registry.onChange(() => document.clear());
    const before = textOf(document);
    registry.register({ ...many(1)[0], description: "Another." } as AnyOperation, { replace: true });
    expect(await textOf(document)).toContain('"Another."');
    expect(await before).not.toContain('"Another."');
    expect(await textOf(document)).toContain('"Another."');
    stop();
  });

  it("RE-30 is tried again where it could not be written", async () => {
    const registry = new OperationRegistry(many(1));
    let fails = true;
    const format = {
      ...{ name: "odd", mimeType: "text/plain" },
      outputSchema: () => undefined,
    };
    const formats = new Proxy([format], {
      get(target, key, receiver) {
        if (key === "map" && fails) throw new RangeError("formats");
        return Reflect.get(target, key, receiver);
      },
    });
    const document = new ServedDocument(registry, { formats: formats as never });
    await expect(document.answer(undefined, ORIGIN)).rejects.toThrow("formats");
    fails = false;
    expect(await textOf(document)).toContain("odd");
  });
});
