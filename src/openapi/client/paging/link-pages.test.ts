import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { collect, rejection } from "../../../../test/make-operation.ts";
import { createClient } from "../../../core/client/client.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { fromOpenApi } from "../from-openapi.ts";
import type { OpenApiOptions, PagingRule } from "../openapi-options.ts";

/** What a server answers to one request: a list, and a `Link` header where there is one. */
type Answer = (
  search: URLSearchParams,
  request: IncomingMessage,
) => { readonly rows: unknown; readonly link?: string };

/** A server of lists that keeps the queries it was asked with. */
async function serve(answer: Answer) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://here.invalid");
    asked.push(url.search);
    const { rows, link } = answer(url.searchParams, request);
    if (link !== undefined) response.setHeader("link", link);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(rows));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** An API with one list, whose document says nothing of headers. */
async function importRows(url: string, parameters: readonly string[], options: Partial<OpenApiOptions> = {}) {
  const document = {
    openapi: "3.1.0",
    info: { title: "Rows", version: "1.0.0" },
    paths: {
      "/rows": {
        get: {
          operationId: "rows",
          parameters: parameters.map((name) => ({ name, in: "query", schema: { type: "integer" } })),
          responses: {
            200: {
              description: "Rows",
              content: { "application/json": { schema: { type: "array", items: { type: "integer" } } } },
            },
          },
        },
      },
    },
  };
  const source = await fromOpenApi(document, { namespace: "api", baseUrl: url, ...options });
  onTestFinished(() => source.close());
  const registry = new OperationRegistry();
  registry.registerAll(source);
  return { registry, client: createClient(registry) };
}

const ruled = (paging: PagingRule | false): Partial<OpenApiOptions> => ({
  overlay: { operations: { rows: { paging } } },
});

/** Three rows, one by one; the last page tells of the first and the previous. */
const threeRows =
  (name: string): Answer =>
  (search) => {
    const at = Number(search.get(name) ?? 0);
    const next = `</rows?${name}=${at + 1}>; rel="next"`;
    return { rows: [at], link: at < 2 ? next : `</rows>; rel="first", </rows?${name}=1>; rel="prev"` };
  };

describe("a Link header that the document does not declare", () => {
  it("RE-27 leads through the pages of an operation in which nothing else looks like paging", async () => {
    const { url, asked } = await serve(threeRows("at"));
    const { client, registry } = await importRows(url, ["at"]);
    expect(await collect(client.pages("api.rows", {}))).toEqual([[0], [1], [2]]);
    expect(asked).toEqual(["", "?at=1", "?at=2"]);
    const { meta } = await registry.execute("api.rows", { at: 1 });
    expect(meta.waybill?.page).toEqual({ next: "/rows?at=2", input: { at: 2 } });
    expect((await registry.execute("api.rows", { at: 2 })).meta.waybill?.page).toEqual({});
  });

  it("RE-27 is followed to whichever parameter it names, before pages are counted", async () => {
    const { url } = await serve((search) => {
      const page = Number(search.get("page") ?? 1);
      return { rows: [page, page], ...(page === 1 && { link: '</rows?page=7>; rel="next"' }) };
    });
    const { client } = await importRows(url, ["page"]);
    const pages = client.pages("api.rows", {})[Symbol.asyncIterator]();
    expect([(await pages.next()).value, (await pages.next()).value]).toEqual([
      [1, 1],
      [7, 7],
    ]);
  });

  it.each([
    ["by page, as found", ["page"], undefined],
    ["by page, as ruled", ["p"], { style: "page", input: "p" }],
    ["by offset, as ruled", ["p"], { style: "offset", input: "p" }],
  ] as const)("RE-27 stops counting %s where it speaks of no next page", async (_, parameters, rule) => {
    const { url, asked } = await serve(() => ({ rows: [1, 2], link: '</rows>; rel="first"' }));
    const { client } = await importRows(url, parameters, rule && ruled(rule));
    expect(await collect(client.pages("api.rows", {}))).toEqual([[1, 2]]);
    expect(asked).toHaveLength(1);
  });

  it("RE-27 is followed beside a rule: before counting, and where a page names no cursor", async () => {
    const { url } = await serve(threeRows("at"));
    for (const rule of [
      { style: "page", input: "n" },
      { style: "cursor", input: "n", next: "X-Next" },
    ] as const) {
      const { client } = await importRows(url, ["at", "n"], ruled(rule));
      expect(await collect(client.pages("api.rows", {}))).toEqual([[0], [1], [2]]);
    }
    const { client, registry } = await importRows(url, ["at"], ruled(false));
    expect(await collect(client.pages("api.rows", {}))).toEqual([[0]]);
    expect((await registry.execute("api.rows", {})).meta.waybill?.page).toBeUndefined();
  });

  it("RE-27 RE-25 sends nothing to an address elsewhere, credentials least of all", async () => {
    const elsewhere = await serve(() => ({ rows: ["stolen"] }));
    const tokens: unknown[] = [];
    const targets = [
      `${elsewhere.url.replace("127.0.0.1", "localhost")}/rows?at=1`,
      "//evil.example/rows?at=1",
      `${elsewhere.url}/others?at=1`,
    ];
    const { url, asked } = await serve((_, { headers }) => {
      tokens.push(headers.authorization);
      return { rows: [0], link: `<${targets[tokens.length - 1]}>; rel="next"` };
    });
    const { client } = await importRows(url, ["at"], { auth: { bearer: "s3cret" } });
    for (const _ of targets) expect(await collect(client.pages("api.rows", {}))).toEqual([[0]]);
    expect([asked, tokens]).toEqual([
      ["", "", ""],
      ["Bearer s3cret", "Bearer s3cret", "Bearer s3cret"],
    ]);
    // A server behind a proxy may get its own port wrong: the page is asked for where the operation is.
    targets.push(`${elsewhere.url}/rows?at=5`);
    for await (const page of client.pages("api.rows", {})) if (asked.length === 5) expect(page).toEqual([0]);
    expect(asked.at(-1)).toBe("?at=5");
    expect(elsewhere.asked).toEqual([]);
  });

  it.each([
    ["with nothing that is declared", [], "</rows?cursor=c2>; rel=next", undefined],
    ["with the size of a page alone", ["limit"], "</rows?limit=1&cursor=c2>; rel=next", undefined],
    ["in a form that is not read", [], "</rows?page[cursor]=c2>; rel=next", undefined],
    ["as an overlay says", ["limit"], "</rows?cursor=c2>; rel=next", { style: "link" }],
  ] as const)("RE-27 is an error, and no end, where the next page is asked for %s", async (...row) => {
    const [, parameters, link, rule] = row;
    const { url, asked } = await serve(() => ({ rows: [0], link }));
    const { client, registry } = await importRows(url, parameters, rule && ruled(rule));
    const pages = client.pages("api.rows", {})[Symbol.asyncIterator]();
    expect((await pages.next()).value).toEqual([0]);
    expect(await rejection(pages.next())).toMatchObject({
      code: "NOT_IMPLEMENTED",
      message: expect.stringMatching(/"(page\[)?cursor\]?", for which the operation has no input/),
    });
    expect(asked).toHaveLength(1);
    expect((await registry.execute("api.rows", {})).meta.waybill?.page).toBeUndefined();
  });

  it("RE-27 with names that are not declared is no matter where pages can be counted, or a declared one chooses the page", async () => {
    const { url } = await serve((search) => {
      const page = Number(search.get("page") ?? 1);
      return { rows: page < 3 ? [page] : [], link: "</rows?cursor=c2>; rel=next" };
    });
    const { client } = await importRows(url, ["page"]);
    const pages = client.pages("api.rows", {})[Symbol.asyncIterator]();
    const rows = [await pages.next(), await pages.next(), await pages.next()].map(({ value }) => value);
    expect(rows).toEqual([[1], [2], []]);
    expect(await rejection(pages.next())).toMatchObject({ code: "NOT_IMPLEMENTED" });
    const other = await serve((search) => ({
      rows: [1],
      ...(search.get("page") === null && { link: "</rows?page=2&session=x>; rel=next" }),
    }));
    const { registry } = await importRows(other.url, ["page"]);
    expect((await registry.execute("api.rows", {})).meta.waybill?.page).toMatchObject({ input: { page: 2 } });
  });
});
