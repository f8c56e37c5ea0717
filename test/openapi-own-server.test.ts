import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { OperationRegistry, Type } from "../src/index.ts";
import { createHttpHandler, fromOpenApi } from "../src/openapi/index.ts";
import { collect, query, stream } from "./make-operation.ts";
import { withFacts } from "./with-facts.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const LISTS = Type.Object({
  words: Type.Optional(Type.Array(Type.String())),
  to: Type.Optional(Type.Number()),
});

function registry(): OperationRegistry {
  return new OperationRegistry([
    query("shop.old", () => 1, { _meta: { deprecated: true, kept: "here" } }),
    query("shop.older", () => 1, { inputSchema: LISTS, _meta: { deprecated: true } }),
    query("shop.new", () => 1),
    stream(
      "shop.heard",
      async function* (input) {
        yield input;
        yield "and on";
      },
      { inputSchema: LISTS },
    ),
    query(
      "shop.page",
      ({ cursor = "0" }: { cursor?: string }) =>
        withFacts(cursor, {
          page: cursor === "2" ? {} : { next: String(Number(cursor) + 1) },
        }),
      { inputSchema: Type.Object({ cursor: Type.Optional(Type.String()) }) },
    ),
  ]);
}

/** Serves the operations below a prefix of somebody else's server, and tells which requests came. */
async function serve(): Promise<{ url: string; seen: string[] }> {
  const handler = createHttpHandler(registry());
  const app = new Hono();
  const seen: string[] = [];
  app.mount("/inside", (request: Request) => {
    seen.push(`${request.method} ${new URL(request.url).pathname}`);
    return handler.fetch(request);
  });
  const http = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  open.push(
    () => new Promise((resolve) => http.close(resolve).closeAllConnections()),
    () => handler.close(),
  );
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/inside`, seen };
}

async function imported(url: string): Promise<OperationRegistry> {
  const source = await fromOpenApi(`${url}/openapi.json`, { namespace: "imported", keepIds: true });
  open.push(() => source.close());
  const executor = new OperationRegistry();
  executor.registerAll(source);
  return executor;
}

describe("an API of ours inside of another server", () => {
  it("RE-27 links to the next page at the address it is asked under", async () => {
    const { url } = await serve();
    const pages: unknown[] = [];
    for (let next: string | undefined = `${url}/api/shop/page`; next !== undefined; ) {
      const response: Response = await fetch(next);
      pages.push(await response.json());
      const target: string | undefined = /^<([^>]+)>; rel="next"$/.exec(
        response.headers.get("link") ?? "",
      )?.[1];
      next = target === undefined ? undefined : new URL(target, next).href;
    }
    expect(pages).toEqual(["0", "1", "2"]);
  });

  it("RE-25 X-6 keeps what is deprecated, and nothing else of what only its own side knows", async () => {
    const executor = await imported((await serve()).url);
    const metas = ["shop.old", "shop.older", "shop.new"].map((id) => executor.get(id)?._meta);
    expect(metas).toEqual([{ deprecated: true }, { deprecated: true }, undefined]);
  });

  it.each([
    [{}, "GET /api/shop/heard"],
    [{ words: ["a", ""], to: 1 }, "GET /api/shop/heard"],
    [{ words: [] }, "POST /call"],
    [{ to: -0 }, "POST /call"],
    [{ words: ["\ud800"] }, "POST /call"],
  ])("RE-28 X-6 streams whatever the input, by id where no query can say it: %j", async (input, way) => {
    const { url, seen } = await serve();
    const executor = await imported(url);
    const values = await collect(executor.subscribe("shop.heard", input));
    expect(values.map(({ data }) => data)).toStrictEqual([input, "and on"]);
    expect(seen.slice(1)).toEqual([way]);
  });
});
