import { readFileSync } from "node:fs";
import type { Client } from "@modelcontextprotocol/client";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { callTool, connectClient } from "../gateway-process.ts";
import { type InspectorPage, openInspector, soon } from "../inspector-page.ts";
import { callOverHttp, type InspectorProject, openInspectorProject } from "../inspector-project.ts";
import type { ServedFolder } from "../installed-folder.ts";
import { browserSuite, openBrowser } from "../open-browser.ts";

browserSuite("the calls of a gateway in the inspector", () => {
  let browser: Browser;
  let project: InspectorProject;
  let served: ServedFolder;
  let client: Client;
  let inspector: InspectorPage;
  let page: Page;
  beforeAll(async () => {
    project = openInspectorProject();
    [browser, served] = await Promise.all([openBrowser(), project.open()]);
    client = await connectClient("SDK 2, 2026", served);
  });
  afterAll(async () => {
    await client?.close();
    await browser?.close();
    await project?.remove();
  });
  beforeEach(async () => {
    inspector = await openInspector(browser, served.url, { path: "/inspect/#/calls" });
    page = inspector.page;
    await page.getByText("live", { exact: false }).first().waitFor();
  });
  afterEach(() => inspector?.close());

  const list = (): Locator => page.getByRole("listbox", { name: "Calls, newest first" });
  const lines = (words: RegExp): Locator => list().getByRole("option", { name: words });
  const line = (words: RegExp): Locator => lines(words).first();
  const detail = (): Locator => page.getByRole("region", { name: "The chosen call" });

  /** Makes a call over HTTP and opens it once it is listed. */
  const openCall = async (operation: string, input: object = {}): Promise<void> => {
    const first = list().getByRole("option").first();
    const before = await first.getAttribute("id");
    await callOverHttp(served.url, operation, input);
    await soon(() => first.getAttribute("id")).not.toBe(before);
    await first.click();
  };

  it("RE-30 says how to make a call while there was none", async () => {
    await page.getByText("No calls yet.").waitFor();
    await page.getByText(`${served.url}/mcp`).waitFor();
    await soon(() => page.getByText(/curl/).count()).toBeGreaterThan(0);
  });

  it("RE-30 shows calls of other clients as they happen, with the way they came in and how they ended", async () => {
    await callOverHttp(served.url, "post.echo", { text: "over http" });
    await line(/post\.echo.*ok/).waitFor();
    await callTool(client, "post.echo", { text: "over mcp" });
    await callOverHttp(served.url, "post.refuse");
    await callOverHttp(served.url, "post.fail");
    await line(/post\.fail.*failed/).waitFor();
    await line(/post\.refuse.*tool error/).waitFor();
    await soon(() => lines(/post\.echo.*ok.*MCP/).count()).toBe(1);
    await soon(() => lines(/post\.echo.*ok.*HTTP/).count()).toBe(1);
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 leaves ids room on a phone, where an outcome is a sign that is read as its word", async () => {
    await callOverHttp(served.url, "post.refuse");
    await page.setViewportSize({ width: 390, height: 844 });
    const refused = line(/post\.refuse.*tool error/);
    await refused.waitFor();
    const widthOf = async (at: number): Promise<number> =>
      (await refused.locator(":scope > span").nth(at).boundingBox())?.width ?? 0;
    // Twenty letters of the id, and one sign.
    expect(await widthOf(1)).toBeGreaterThan(20 * 7.5);
    expect(await widthOf(2)).toBeLessThan(32);
  });

  it("RE-30 filters calls by text, outcome and transport", async () => {
    await line(/post\.fail/).waitFor();
    const options = list().getByRole("option");
    const names = async (): Promise<string[]> =>
      Promise.all((await options.all()).map(async (one) => (await one.textContent()) ?? ""));
    await page.getByLabel(/Find calls/).fill("echo");
    await soon(async () => (await names()).every((name) => name.includes("post.echo"))).toBe(true);
    await page.getByLabel("Transport").selectOption("MCP");
    await soon(() => options.count()).toBe(1);
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByLabel("Outcome").selectOption("failed");
    await soon(names).toEqual([expect.stringContaining("post.fail")]);
    await page.getByLabel(/Find calls/).fill("no such call");
    await page.getByText("None of the calls held matches the filters.").waitFor();
    await page.getByRole("button", { name: "Show all calls" }).click();
    await soon(() => options.count()).toBeGreaterThan(3);
  });

  it("RE-30 shows who called whom, each with the time it took, and leads from one to the other", async () => {
    await callOverHttp(served.url, "post.tour");
    await line(/post\.tour\s*ok/).click();
    const waterfall = detail().getByRole("region", { name: "Waterfall" });
    const hops = waterfall.getByRole("link");
    await soon(() => hops.count()).toBe(4);
    for (const [at, name] of [
      "1, ok: post.tour",
      "2, ok: post.hop",
      "3, ok: post.leaf",
      "2, ok: post.leaf",
    ].entries())
      expect(await hops.nth(at).ariaSnapshot()).toContain(`Level ${name}`);
    const widths = await Promise.all(
      (await waterfall.locator(".hop").all()).map(async (bar) => (await bar.boundingBox())?.width ?? 0),
    );
    expect(widths[0]).toBeGreaterThan(widths[1] ?? 0);
    expect(widths[1]).toBeGreaterThan(widths[2] ?? 0);
    expect(widths[2]).toBeGreaterThan(0);
    await hops.nth(1).click();
    await detail().getByRole("heading", { name: "post.hop" }).waitFor();
    await page.keyboard.press("Escape");
    await detail().waitFor({ state: "hidden" });
  });

  it("RE-30 opens a call with its input and result, and saves it as a fixture", async () => {
    await openCall("post.echo", { text: "for a test" });
    await detail().getByRole("tree", { name: "Input" }).getByText("for a test").waitFor();
    await detail().getByRole("tree", { name: "Data" }).getByText("for a test").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      detail().getByRole("button", { name: "Export as fixture" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("post.echo.fixture.json");
    const fixture = JSON.parse(readFileSync(await download.path(), "utf8")) as object;
    expect(fixture).toMatchObject({
      waybill: "fixture/1",
      operation: "post.echo",
      input: { text: "for a test" },
      outcome: "ok",
      envelope: { data: { text: "for a test" }, meta: { source: "local", operationId: "post.echo" } },
    });
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 makes a call again with the same input", async () => {
    await openCall("post.echo", { text: "once more" });
    await detail().getByText("once more").first().waitFor();
    await detail().getByRole("button", { name: "Run again" }).click();
    const outcome = page.getByRole("region", { name: "Outcome" });
    const result = outcome.getByRole("region", { name: "Result", exact: true });
    await result.getByText("once more").first().waitFor();
    expect(await page.getByRole("textbox", { name: /^Text/ }).inputValue()).toBe("once more");
    await inspector.view("Calls");
    await soon(() => lines(/post\.echo.*ok.*Inspector/).count()).toBe(1);
    await openCall("post.echo", { text: "another time" });
    await detail().getByRole("button", { name: "Open in Operations" }).click();
    await soon(() => page.getByRole("textbox", { name: /^Text/ }).inputValue()).toBe("another time");
    await page.getByText("Nothing has run yet.").waitFor();
    expect(await result.count()).toBe(0);
    await page.keyboard.press("Enter");
    await result.getByText("another time").first().waitFor();
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 makes no call again whose secrets are not kept, and asks before one that may destroy", async () => {
    const to = { name: "Ada", country: "DE" };
    await openCall("post.send", { to, items: [{ sku: "A" }], door: "secret-11" });
    await detail().getByRole("button", { name: "Run again" }).click();
    await page.getByText("Secrets are not kept: fill them in, then run.").waitFor();
    await page.getByText("Nothing has run yet.").waitFor();
    expect(await page.getByLabel("Door code").inputValue()).toBe("");
    await inspector.view("Calls");
    await openCall("post.wipe");
    await detail().getByRole("button", { name: "Run again" }).click();
    await page.getByRole("alertdialog").waitFor();
    await page.getByText("Nothing has run yet.").waitFor();
  });

  it("RE-30 counts calls by operation, and lists those of one", async () => {
    await line(/post\.echo/).waitFor();
    await page.getByRole("tab", { name: "By operation" }).click();
    const row = page.getByRole("row", { name: /post\.leaf/ });
    await soon(() => row.textContent()).toMatch(/post\.leaf2/);
    await row.getByRole("button").click();
    await soon(() => list().getByRole("option").count()).toBe(2);
    expect(inspector.elsewhere).toEqual([]);
  });

  it("RE-30 stands still while it is paused, and goes on with what came meanwhile", async () => {
    await line(/post\.echo/).waitFor();
    const first = await list().getByRole("option").first().getAttribute("id");
    await page.getByRole("button", { name: "Pause" }).click();
    await callOverHttp(served.url, "post.rows");
    await callOverHttp(served.url, "post.rows");
    await page.getByRole("button", { name: /2 new calls/ }).waitFor();
    expect(await list().getByRole("option").first().getAttribute("id")).toBe(first);
    await page.getByRole("button", { name: "Resume" }).click();
    await line(/post\.rows/).waitFor();
  });

  it("RE-30 shows a call while it runs, and takes it up when it has ended", async () => {
    const stop = new AbortController();
    const body = JSON.stringify({ operation: "post.slow", input: {} });
    const headers = { "content-type": "application/json" };
    const slow = fetch(`${served.url}/call`, { method: "POST", headers, body, signal: stop.signal });
    await line(/post\.slow\s*running/).click();
    await detail().getByText("nothing came back yet").waitFor();
    stop.abort();
    await slow.catch(() => {});
    await line(/post\.slow\s*cancelled/).waitFor();
    await detail().getByText("ABORTED").first().waitFor();
  });
});
