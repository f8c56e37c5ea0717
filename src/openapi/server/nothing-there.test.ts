import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createHttpHandler } from "./http-handler.ts";

const handler = createHttpHandler(
  new OperationRegistry([
    query("shop.search", () => 1),
    query("shop.secret", () => 1, { access: { scopes: { allOf: ["secrets"] } } }),
    query("shop.intern", () => 1, { visibility: "internal" }),
  ]),
);

async function detailOf(path: string, method = "GET"): Promise<unknown> {
  const response = await handler.fetch(new Request(`http://localhost${path}`, { method }));
  const { status, code, detail } = (await response.json()) as Record<string, unknown>;
  return [status, code, detail];
}

describe("an address where nothing is", () => {
  it.each([
    [
      "/api/shop/serch",
      "OPERATION_NOT_FOUND",
      'no operation at "/api/shop/serch". Did you mean "/api/shop/search"?',
    ],
    [
      "/api/shop/Search",
      "OPERATION_NOT_FOUND",
      'no operation at "/api/shop/Search". Did you mean "/api/shop/search"?',
    ],
    ["/shop/search", "NOT_FOUND", 'nothing at "/shop/search". Did you mean "/api/shop/search"?'],
    ["/openapi.jsn", "NOT_FOUND", 'nothing at "/openapi.jsn". Did you mean "/openapi.json"?'],
    ["/else/where", "NOT_FOUND", 'nothing at "/else/where". See /openapi.json for what is there.'],
  ])("RE-30 is named, with one that may be meant: %s", async (path, code, said) => {
    expect(await detailOf(path)).toEqual([404, code, `There is ${said}`]);
  });

  it("RE-30 hints at nothing that the caller may not see", async () => {
    for (const path of ["/api/shop/secreet", "/api/shop/inten", "/shop/secret", "/api/shop/intern"]) {
      const said = await detailOf(path);
      expect(JSON.stringify(said)).not.toContain("Did you mean");
    }
  });

  it("RE-30 is shown in part where it is long", async () => {
    const said = JSON.stringify(await detailOf(`/api/${"x".repeat(60_000)}/y`, "POST"));
    expect(said.length).toBeLessThan(400);
  });
});
