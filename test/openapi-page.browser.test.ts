import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { defineOperation, OperationRegistry, Type } from "../src/index.ts";
import { createHttpHandler, fromOpenApi, serveHttp } from "../src/openapi/index.ts";
import { browserSuite, openBrowser } from "./open-browser.ts";

const HOSTILE =
  '<img src="https://elsewhere.example/x.png"><img src=x onerror="window.broken = 1"><script>window.broken = 1</script>';

const greet = (extra: string) =>
  defineOperation({
    namespace: "people",
    name: "greet",
    version: "1.0.0",
    type: "query",
    title: "Greets somebody",
    description: `Says hello.${extra}`,
    inputSchema: Type.Object(
      { name: Type.String({ description: `Whom to greet.${extra}` }) },
      { additionalProperties: false },
    ),
    outputSchema: Type.Object({ greeting: Type.String() }),
    handler: ({ name }) => ({ greeting: `Hello, ${name}!` }),
  });

/** Calls the one operation, whose block is open. */
async function greetAda(block: Locator): Promise<void> {
  await block.getByRole("button", { name: "Try it out" }).click();
  await block.locator("input[type=text]").fill("Ada");
  await block.getByRole("button", { name: "Execute" }).click();
  await block.getByText("Hello, Ada!").first().waitFor();
}

browserSuite("the API page in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  /** Opens the page of an API, and its one operation in it; tells whom the page asked, and what went wrong. */
  async function openPage(extra: string) {
    const http = await serveHttp(new OperationRegistry([greet(extra)]), { info: { title: "People" } });
    const page = await browser.newPage({ viewport: { width: 1_000, height: 900 } });
    const asked = new Set<string>();
    const faults: string[] = [];
    page.on("requestfinished", (request) => asked.add(new URL(request.url()).origin));
    page.on("requestfailed", (request) => {
      // What the page's own policy stops never leaves the browser.
      if (request.failure()?.errorText !== "csp") asked.add(new URL(request.url()).origin);
    });
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") faults.push(message.text());
    });
    await page.goto(`${http.url}/docs`);
    const block = page.locator(".opblock", { hasText: "/api/people/greet" });
    await block.locator(".opblock-summary-control").click();
    const close = async () => {
      await page.close();
      await http.close();
    };
    return { page, block, faults, others: () => [...asked].filter((origin) => origin !== http.url), close };
  }

  it("RE-30 shows every operation, calls it, and asks nobody else for anything", async () => {
    const { page, block, faults, others, close } = await openPage("");
    expect(await page.locator("h1, h2").first().textContent()).toContain("People");
    expect(await block.textContent()).toContain("Greets somebody");
    await greetAda(block);
    expect([faults, others()]).toEqual([[], []]);
    const folder = process.env["WAYBILL_SCREENSHOTS"];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/docs.png` });
    await close();
  });

  it("RE-30 runs nothing that a description says, and asks nobody on its behalf", async () => {
    const { page, block, others, close } = await openPage(HOSTILE);
    await block.getByText("Whom to greet.").first().waitFor();
    expect(await page.evaluate("window.broken")).toBeUndefined();
    expect(others()).toEqual([]);
    await close();
  });

  it("RE-30 asks for a key where the API wants one, and calls with it", async () => {
    const http = await serveHttp(new OperationRegistry([greet("")]), {
      info: { title: "People" },
      auth: { apiKeys: { header: "X-Our-Key", keys: { "the-key": { subject: "ada", scopes: [] } } } },
    });
    const page = await browser.newPage();
    await page.goto(`${http.url}/docs`);
    const field = page.getByLabel("Credential");
    await field.waitFor();
    expect(await page.locator("#sign-in-fault").isVisible()).toBe(false);
    await field.fill("wrong");
    await page.getByRole("button", { name: "Show the API" }).click();
    await page.getByText("This was not accepted.").waitFor();
    await field.fill("the-key");
    await page.getByRole("button", { name: "Show the API" }).click();
    const block = page.locator(".opblock", { hasText: "/api/people/greet" });
    await block.locator(".opblock-summary-control").click();
    await greetAda(block);
    expect(await page.locator("#sign-in").isVisible()).toBe(false);
    // It is still known after the page was loaded again.
    await page.goto("about:blank");
    await page.goto(`${http.url}/docs`);
    await block.locator(".opblock-summary-control").click();
    await greetAda(block);
    await page.close();
    await http.close();
  });

  it("RE-30 calls where the API is mounted, wherever that is", async () => {
    const handler = createHttpHandler(new OperationRegistry([greet("")]));
    const app = new Hono().mount("/sub", (request) => handler.fetch(request));
    const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/sub`;
    const page = await browser.newPage();
    await page.goto(`${url}/docs`);
    const block = page.locator(".opblock", { hasText: "/api/people/greet" });
    await block.locator(".opblock-summary-control").click();
    await greetAda(block);
    expect(await block.textContent()).toContain(`${url}/api/people/greet?name=Ada`);
    await page.close();
    const source = await fromOpenApi(`${url}/openapi.json`, { namespace: "far" });
    const registry = new OperationRegistry(source.operations);
    const { data } = await registry.execute("far.people.greet", { name: "Bob" });
    expect(data).toEqual({ greeting: "Hello, Bob!" });
    await source.close();
    server.close();
    await handler.close();
  });
});
