import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { barriersOn } from "../inspector-axe.ts";
import { copied, drawn, type InspectorPage, openInspector, soon } from "../inspector-page.ts";
import { callOverHttp, type InspectorProject, openInspectorProject } from "../inspector-project.ts";
import type { ServedFolder } from "../installed-folder.ts";
import { browserSuite, openBrowser } from "../open-browser.ts";

/** An MCP server that offers resources and prompts, and whose texts are hostile. */
const NOTES = `
import { createInterface } from "node:readline";
console.error("the notebook is open");
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const subscribed = new Set();
const hostile = "A **bold** note, <img src=x onerror=alert(1)>, ![pixel](https://evil.example/p.png) and [docs](https://example.com/docs) or [bad](javascript:alert(1)).";
let count = 0;
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {} }, serverInfo: { name: "notes", version: "1.0.0" } }),
  "tools/list": () => ({ tools: [{ name: "add", description: hostile, inputSchema: { type: "object", properties: { text: { type: "string" } } } }, { name: "refuse", inputSchema: { type: "object" } }] }),
  "tools/call": ({ name }) => {
    count += 1;
    for (const uri of subscribed) setTimeout(() => send({ method: "notifications/resources/updated", params: { uri } }), 10);
    return { isError: name === "refuse", content: [{ type: "text", text: name === "refuse" ? "The notebook is closed." : "added" }] };
  },
  "resources/list": () => ({ resources: [{ uri: "note://count", name: "count", title: "How many", description: hostile }] }),
  "resources/templates/list": () => ({ resourceTemplates: [{ uriTemplate: "note://{name}", name: "by name" }] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/plain", text: uri + " after " + count + " calls" }] }),
  "resources/subscribe": ({ uri }) => { subscribed.add(uri); return {}; },
  "resources/unsubscribe": ({ uri }) => { subscribed.delete(uri); return {}; },
  "prompts/list": () => ({ prompts: [{ name: "sum", title: "Sum up", arguments: [{ name: "style", required: true }] }] }),
  "prompts/get": ({ arguments: given }) => ({ messages: [{ role: "user", content: { type: "text", text: "Sum it up, " + given.style + "." } }] }),
  "completion/complete": () => ({ completion: { values: ["short", "long"] } }),
  ping: () => ({}),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  send(answer === undefined ? { id, error: { code: -32601, message: "no" } } : { id, result: answer(params ?? {}) });
});
`;

browserSuite("the first view, resources and logs of the inspector", () => {
  let browser: Browser;
  let project: InspectorProject;
  let served: ServedFolder;
  let inspector: InspectorPage;
  let page: Page;
  beforeAll(async () => {
    browser = await openBrowser();
    project = openInspectorProject();
    project.write("notes.mjs", NOTES);
    const { mcpServers } = project.config;
    project.write("waybill.config.json", {
      ...project.config,
      mcpServers: { ...mcpServers, notes: { command: process.execPath, args: ["notes.mjs"] } },
    });
    served = await project.open();
    await callOverHttp(served.url, "notes.add", { text: "first" });
    await callOverHttp(served.url, "notes.refuse", {});
    inspector = await openInspector(browser, served.url, { path: "/inspect" });
    page = inspector.page;
  });
  afterAll(async () => {
    await inspector?.close();
    await browser?.close();
    await project?.remove();
  });

  const go = (hash: string): Promise<void> =>
    page.evaluate((wanted) => {
      location.hash = wanted;
    }, `#/${hash}`);

  it("RE-30 begins with addresses, what clients need, the sources and the last calls", async () => {
    const addresses = page.getByRole("region", { name: "Addresses" });
    expect(await copied(page, addresses.getByRole("button", { name: "Copy" }).first())).toBe(
      `${served.url}/mcp`,
    );
    const connect = page.getByRole("region", { name: "Connect a client" });
    await connect.getByRole("tab", { name: "VS Code" }).click();
    const block = JSON.parse(await copied(page, connect.getByRole("button", { name: "Copy" })));
    expect(block).toEqual({ servers: { "post-office": { type: "http", url: `${served.url}/mcp` } } });
    await soon(() => page.getByRole("region", { name: "Sources" }).textContent()).toMatch(
      /3 of 3 up[\s\S]*notes/,
    );
    await soon(() => page.getByRole("region", { name: "Tool list" }).textContent()).toMatch(
      /\d+ tools, about [\d,]+ tokens/,
    );
    await soon(() => page.getByRole("region", { name: "Last calls" }).textContent()).toMatch(
      /tool error\s*notes\.refuse/,
    );
  });

  it("RE-30 lists resources and prompts, reads, follows and fills them in", async () => {
    await inspector.view("Resources");
    await page.getByRole("link", { name: /count/ }).click();
    const answer = page.getByRole("region", { name: "Answer" });
    await answer.getByText("note://count after 2 calls").waitFor();
    await page.getByRole("button", { name: "Subscribe" }).click();
    await page.getByText("Subscribed.").waitFor();
    await callOverHttp(served.url, "notes.add", { text: "second" });
    await answer.getByText("note://count after 3 calls").waitFor();
    await go("resources/template%2Fnotes%2Fnote%3A%2F%2F%7Bname%7D");
    await page
      .getByRole("textbox", { name: /name/ })
      .or(page.getByRole("combobox", { name: /name/ }))
      .fill("a b");
    await page.getByRole("button", { name: "Read", exact: true }).click();
    await answer.getByText("note://a%20b after 3 calls").waitFor();
    await go("resources/prompt%2Fnotes%2Fsum");
    const style = page.getByRole("combobox", { name: /style/ });
    await style.focus();
    await soon(() => page.locator("datalist option").count()).toBe(2);
    await style.fill("short");
    await page.getByRole("button", { name: "Fill in" }).click();
    await answer.getByText("Sum it up, short.").waitFor();
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 reads descriptions as Markdown, and makes neither HTML nor images of them", async () => {
    await go("operations/notes.add");
    const head = page.locator(".markdown").first();
    await head.locator("strong", { hasText: "bold" }).waitFor();
    expect(await head.locator("img, script").count()).toBe(0);
    expect(await head.textContent()).toContain("<img src=x onerror=alert(1)>");
    expect(await head.textContent()).toContain(" (example.com)");
    expect(
      await head
        .getByRole("link")
        .evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href)),
    ).toEqual([expect.stringContaining("https://evil.example/p.png"), "https://example.com/docs"]);
    expect([inspector.elsewhere, inspector.moves]).toEqual([[], []]);
  });

  it("RE-30 fills in the input of a link, and does not run it", async () => {
    const before = await page.evaluate(() => location.hash);
    await go(`operations/notes.add?input=${encodeURIComponent('{"text":"from a link"}')}`);
    await page.getByRole("textbox", { name: /text/ }).first().waitFor();
    await soon(() => page.getByRole("textbox", { name: /text/ }).first().inputValue()).toBe("from a link");
    await page.getByText("Nothing has run yet.").waitFor();
    const link = await copied(page, page.getByRole("button", { name: "Copy link" }));
    expect(decodeURIComponent(new URL(link).hash)).toBe(
      '#/operations/notes.add?input={"text":"from a link"}',
    );
    expect(before).not.toBe(await page.evaluate(() => location.hash));
    await go("operations/notes.add?input=%7Bnot%20json");
    await page.getByRole("button", { name: "Run", exact: true }).waitFor();
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 shows operators the log of a source and the messages of a call", async () => {
    await go("sources/notes");
    const card = page.getByRole("article", { name: "notes" });
    await card.getByText("Log", { exact: true }).click();
    await card.getByText("tools/call").first().waitFor();
    await card.getByLabel("Show").selectOption("stderr");
    await card.getByText("the notebook is open").waitFor();
    await go("calls");
    await page
      .getByRole("option", { name: /notes\.refuse/ })
      .first()
      .click();
    const messages = page.getByRole("region", { name: "Messages" });
    await messages.getByText("tools/call").first().click();
    await messages.getByText("refuse").first().waitFor();
    await page.getByLabel("Find in inputs and results").fill("notebook is CLOSED");
    const found = page.getByRole("listbox", { name: "Calls, newest first" }).getByRole("option");
    await soon(() => found.count()).toBe(1);
  });

  const STATES: Readonly<Record<string, () => Promise<unknown>>> = {
    "the first view": () => go("home").then(() => page.getByRole("region", { name: "Tool list" }).waitFor()),
    "a resource": () =>
      go("resources/resource%2Fnotes%2Fnote%3A%2F%2Fcount").then(() =>
        page.getByRole("region", { name: "Answer" }).waitFor(),
      ),
    "a prompt": () =>
      go("resources/prompt%2Fnotes%2Fsum").then(() =>
        page.getByRole("button", { name: "Fill in" }).waitFor(),
      ),
    "a log": async () => {
      await go("sources/notes");
      await page.getByRole("article", { name: "notes" }).getByText("Log", { exact: true }).click();
      await page.getByText("resources/list").first().waitFor();
    },
  };

  it.each(Object.keys(STATES))("RE-30 has no barrier and no sideways scroll: %s", async (name) => {
    for (const width of [1_280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await go("decode");
        await page.getByRole("group", { name: "Examples" }).waitFor();
        await STATES[name]?.();
        await drawn(page);
        expect(await barriersOn(page)).toEqual([]);
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(beyond).toBeLessThanOrEqual(0);
      }
    }
  });
});
