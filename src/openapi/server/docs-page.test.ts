import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import { createDocsPage, type DocsPage } from "./docs-page.ts";
import { createHttpHandler } from "./http-handler.ts";
import { toOpenApi } from "./to-openapi.ts";

const CREDENTIALS = [
  { label: "API key (x-<key>)", header: "x-<key>", prefix: "" },
  { label: "Bearer token", header: "authorization", prefix: "Bearer " },
];

const OPTIONS = { title: "Shop & <b>more</b>", documentPath: "/openapi.json" };

async function get(page: DocsPage, path: string): Promise<HttpAnswer & { readonly text: string }> {
  const answer = (await page(path, () => document)) as HttpAnswer;
  const { body } = answer;
  return { ...answer, text: body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body) };
}

const HOSTILE = `</p><script src=//evil.example/x.js></script><img src=x onerror="alert(1)">'&lt;`;

const document = toOpenApi(
  new OperationRegistry([
    query("shop.find", () => 1, { title: HOSTILE, description: `${HOSTILE}\nhttps://evil.example` }),
    query("shop.old", () => 1, { _meta: { deprecated: true } }),
  ]),
  { info: { description: HOSTILE } },
);

const ways: readonly (readonly [string, DocsPage, readonly string[]])[] = [
  [
    "swagger-ui",
    createDocsPage(OPTIONS),
    ["init.js", "swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"],
  ],
  [
    "swagger-ui and a form",
    createDocsPage({ ...OPTIONS, credentials: CREDENTIALS }),
    ["init.js", "sign-in.css", "swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"],
  ],
  ["a plain list", createDocsPage({ ...OPTIONS, swaggerUi: false }), ["page.css"]],
];

describe.each(ways)("the API page with %s", (_, page, assets) => {
  it("RE-30 is a page that takes everything from beside itself", async () => {
    const { status, headers, text } = await get(page, "/docs");
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    const links = [...text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link = ""]) => link);
    for (const link of links) {
      const { pathname, origin } = new URL(link, "http://host/any/prefix/docs");
      expect(origin).toBe("http://host");
      const path = pathname.slice("/any/prefix".length);
      expect(path === "/openapi.json" || (await page(path)) !== undefined).toBe(true);
    }
    expect(links.length).toBeGreaterThanOrEqual(2);
  });

  it("RE-30 forbids the browser whatever is not from here, and scripts within the page", async () => {
    for (const path of ["/docs", ...assets.map((name) => `/docs/${name}`)]) {
      const { headers, status } = await get(page, path);
      expect(status).toBe(200);
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|\*|https?:/);
    }
    const { text } = await get(page, "/docs");
    expect(text).not.toMatch(/<script(?![^>]* src="docs\/)|<style| style=| on[a-z]+="/);
  });

  it("RE-30 names no address elsewhere", async () => {
    const own = assets.filter((name) => !/bundle|png/.test(name)).map((name) => `/docs/${name}`);
    for (const path of ["/docs", ...own]) {
      const text = (await get(page, path)).text.replaceAll("http://www.w3.org/2000/svg", "");
      const shown = text.replaceAll("https://evil.example</p>", "");
      expect(shown).not.toMatch(/https?:\/\//);
    }
  });

  it("RE-30 shows its title as text", async () => {
    expect((await get(page, "/docs")).text).toContain("<title>Shop &amp; &lt;b&gt;more&lt;/b&gt;</title>");
  });

  it("RE-30 sends who asks for its folder to the page", async () => {
    const { status, headers } = await get(page, "/docs/");
    expect(status).toBe(308);
    expect(new URL(String(headers["location"]), "http://host/any/docs/").pathname).toBe("/any/docs");
  });

  it.each([
    "/",
    "/docsx",
    "/docs/package.json",
    "/docs/../package.json",
    "/docs/%2e%2e/x",
    "/docs/index.js",
    "/docs/constructor",
  ])("RE-30 has nothing at %s", async (path) => {
    expect(await page(path)).toBeUndefined();
  });
});

describe("the API page with swagger-ui", () => {
  it("RE-30 has the document checked by nobody else", async () => {
    const page = createDocsPage(OPTIONS);
    const { text } = await get(page, "/docs/init.js");
    expect(text).toContain('const url = "openapi.json";');
    expect(text).toContain('"validatorUrl":null');
    const bundle = await get(page, "/docs/swagger-ui-bundle.js");
    expect(bundle.text).toContain("SwaggerUIBundle");
    expect(bundle.headers["content-type"]).toBe("text/javascript; charset=utf-8");
  });
});

describe("the API page as a plain list", () => {
  it("RE-30 shows every operation, and nothing they say is markup", async () => {
    const page = createDocsPage({ ...OPTIONS, swaggerUi: false });
    const { text } = await get(page, "/docs");
    expect(text).toContain("<b>POST</b> /api/shop/find</code>");
    expect(text).toContain("/api/shop/old</code> <em>deprecated</em>");
    expect(text).toContain("<b>GET</b> /health</code>");
    expect(text).toContain("swagger-ui-dist");
    expect(text).not.toMatch(/<script|<img|onerror="/);
    expect(text.split("&lt;script src=//evil.example/x.js&gt;")).toHaveLength(4);
    expect(text).toContain("&#39;&amp;lt;");
  });

  it("RE-30 says how to ask for it to whom nobody knows, and nothing more", async () => {
    const page = createDocsPage({ ...OPTIONS, swaggerUi: false, credentials: CREDENTIALS });
    const text = String((await page("/docs"))?.body);
    expect(text).toContain("<code>x-&lt;key&gt;: …</code> or <code>authorization: Bearer …</code>");
    expect(text).not.toContain("/api/shop");
    expect((await get(page, "/docs")).text).not.toContain("asks who is calling");
  });

  it("RE-30 still leads to the document where it is not given one", async () => {
    const page = createDocsPage({ ...OPTIONS, swaggerUi: false });
    expect(String((await page("/docs"))?.body)).toContain('<a href="openapi.json">');
  });
});

describe("the API page of an API that asks who is calling", () => {
  const handler = createHttpHandler(new OperationRegistry([query("shop.find", () => 1)]), {
    auth: { apiKeys: { keys: { "the-key": { subject: "me", scopes: [] } } } },
  });
  const ask = (path: string, init?: RequestInit) =>
    handler.fetch(new Request(`http://localhost${path}`, init));

  it("RE-30 opens for everybody, and the document does not", async () => {
    for (const path of ["/docs", "/docs/init.js", "/docs/sign-in.css", "/docs/swagger-ui.css"]) {
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
    }
    expect((await ask("/docs", { method: "HEAD" })).status).toBe(200);
    for (const path of ["/openapi.json", "/docs/package.json", "/docs/other", "/docsx"]) {
      expect([path, (await ask(path)).status]).toEqual([path, 401]);
    }
    expect((await ask("/docs", { method: "POST" })).status).toBe(401);
    const text = await (await ask("/docs")).text();
    expect(text).toContain("API key (x-api-key)");
    expect(text).not.toContain("shop");
  });

  it("RE-30 opens whatever credential comes along", async () => {
    const headers = { "x-api-key": "wrong" };
    expect((await ask("/docs", { headers })).status).toBe(200);
    expect((await ask("/openapi.json", { headers })).status).toBe(401);
  });
});
