import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { strangeIn, watchElements } from "../inspector-element-watch.ts";
import { type InspectorPage, openInspector, soon } from "../inspector-page.ts";
import { callOverHttp, type InspectorProject, openInspectorProject } from "../inspector-project.ts";
import { HOSTILE_MODULE, PAGE_TEXTS, SEEN_TEXTS } from "../inspector-texts.ts";
import { type ServedFolder, scriptedTool } from "../installed-folder.ts";
import { browserSuite, openBrowser } from "../open-browser.ts";
import { ROOT } from "../run-node.ts";

const ADDRESSES = [
  "javascript:window.__pwned=1",
  "data:text/html,<script>parent.__pwned=1</script>",
  "//evil.example/x",
];
const MARKUP =
  "<svg xmlns='http://www.w3.org/2000/svg' onload='parent.__pwned=1'><script>parent.__pwned=1</script></svg>";

/** Results that are decoded at a time. */
const MOST_AT_ONCE = 200;

/** A tool whose content is of every kind, with types and addresses that are not what they seem. */
const MEDIA = scriptedTool(
  "media",
  "Answers with media.",
  {},
  {
    content: [
      ...[
        'image/png" onerror="window.__pwned=1',
        "text/html",
        "image/svg+xml",
        "javascript",
        ...PAGE_TEXTS.slice(0, 10),
      ].flatMap((mimeType) => [
        { type: "image", data: Buffer.from(MARKUP).toString("base64"), mimeType },
        { type: "image", data: '"><img src=x onerror=window.__pwned=1>', mimeType: "image/png" },
        { type: "audio", data: Buffer.from(MARKUP).toString("base64"), mimeType },
      ]),
      ...[...ADDRESSES, ...PAGE_TEXTS.slice(40, 70)].flatMap((uri) => [
        { type: "resource_link", uri, name: uri, title: uri, description: uri, mimeType: uri },
        { type: "resource", resource: { uri, mimeType: "text/html", text: MARKUP } },
      ]),
      ...PAGE_TEXTS.map((type) => ({ type, [type]: type })),
    ],
  },
);

browserSuite("an inspector of sources that mean no good", () => {
  let browser: Browser;
  let project: InspectorProject;
  let served: ServedFolder;
  let inspector: InspectorPage;
  let page: Page;
  beforeAll(async () => {
    const texts = JSON.stringify(PAGE_TEXTS);
    project = openInspectorProject({
      operations: ["ops/*.mjs", "own/*.mjs"],
      mcpServers: {
        bad: {
          command: process.execPath,
          args: [join(ROOT, "test/mcp-children/hostile-texts.js"), "own/texts.json"],
        },
        [PAGE_TEXTS[0] ?? ""]: { command: "no-such-command", args: [...PAGE_TEXTS.slice(0, 20)] },
        depot: { command: process.execPath, args: ["depot/server.mjs", "depot/tools.json"] },
      },
      name: PAGE_TEXTS[0],
    });
    project.write("own/own.mjs", HOSTILE_MODULE);
    project.write("own/texts.json", texts);
    project.setTools([MEDIA]);
    [browser, served] = await Promise.all([openBrowser(), project.open()]);
    inspector = await openInspector(browser, served.url, { before: watchElements });
    page = inspector.page;
    await page.getByText(/live/).first().waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await project?.remove();
  });

  /** Nothing of what is shown has become markup, run, asked anybody or led anywhere. */
  const isUnharmed = async (): Promise<void> => {
    expect(await strangeIn(page)).toEqual({ strange: [], pwned: null });
    expect(inspector.elsewhere).toEqual([]);
    expect(inspector.moves).toEqual([]);
    // Calls of operations that nobody has are opened, and what is no result is decoded.
    expect(inspector.faults.filter((fault) => !/40[04] \((Not Found|Bad Request)\)/.test(fault))).toEqual([]);
  };
  const shows = async (text: string): Promise<void> =>
    void (await soon(async () => (await page.locator("body").textContent())?.includes(text)).toBe(true));
  const run = async (operation: string): Promise<void> => {
    await inspector.choose(operation);
    await page.getByRole("button", { name: "Run", exact: true }).click();
  };
  /** Visits every side of the result that is shown. */
  const lookAtAllSides = async (): Promise<void> => {
    const result = page.getByRole("region", { name: "Result", exact: true }).first();
    await result.waitFor();
    for (const tab of await result.getByRole("tab").all()) {
      await tab.click();
      const ways = result.getByRole("group", { name: "Show the data as" }).getByRole("button");
      for (const way of await ways.all()) await way.click();
    }
    await soon(() => result.getByRole("region", { name: /^Result as/ }).count()).toBeGreaterThan(0);
  };

  it("RE-30 lists more than a hundred hostile names and titles as the texts they are", async () => {
    const list = page.getByRole("listbox", { name: "Operations" });
    await list.getByRole("option").first().waitFor();
    for (const text of SEEN_TEXTS) {
      await page.getByRole("combobox", { name: "Search operations" }).fill(text.slice(0, 60));
      await soon(() => list.getByRole("option").count()).toBeGreaterThan(0);
      await shows(text);
    }
    await page.getByRole("combobox", { name: "Search operations" }).fill("");
    await page.evaluate(async () => {
      const box = document.querySelector("[role=listbox]");
      for (let top = 0; box !== null && top < box.scrollHeight; top += 400) {
        box.scrollTo({ top });
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    });
    await isUnharmed();
  });

  it("RE-30 makes a form of hostile members, choices and defaults, and runs it", async () => {
    await inspector.choose("own.form");
    for (const text of SEEN_TEXTS.slice(0, 3)) await shows(text);
    for (const tab of ["Input schema", "Output schema", "About", "Run"]) {
      await page.getByRole("tab", { name: tab, exact: true }).click();
      for (const toggle of await page.getByRole("button", { name: "JSON", exact: true }).all())
        await toggle.click();
    }
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await lookAtAllSides();
    await page.getByRole("radio", { name: "JSON" }).check();
    await page.getByRole("button", { name: /History/ }).click();
    await isUnharmed();
    expect(await page.evaluate(() => ({}).constructor === Object && !("polluted" in {}))).toBe(true);
  });

  it("RE-30 shows hostile data, errors, logs, questions and values from all sides", async () => {
    for (const operation of [
      "own.says",
      "own.rows",
      "own.series",
      "own.refuses",
      "bad.fields",
      "bad.envelope",
    ]) {
      await run(operation);
      await lookAtAllSides();
      await isUnharmed();
    }
    await run("own.breaks");
    await page.getByRole("region", { name: "Error" }).getByRole("tree").waitFor();
    await run("own.each");
    await page
      .getByRole("listbox", { name: "Values, the newest first" })
      .getByRole("option")
      .first()
      .waitFor();
    await run("own.chats");
    const question = page.getByRole("region", { name: "Question of the operation" });
    await question.getByRole("button", { name: "Accept" }).click();
    await question
      .getByText(/javascript:/)
      .first()
      .waitFor();
    expect(
      await question.getByRole("link").evaluateAll((links) => links.map((link) => link.getAttribute("href"))),
    ).not.toContain(ADDRESSES[0]);
    await question.getByRole("button", { name: "Decline" }).click();
    await lookAtAllSides();
    await isUnharmed();
  });

  it("RE-30 shows media of hostile types and addresses without loading, playing or following any", async () => {
    await run("depot.media");
    await lookAtAllSides();
    await page.getByRole("tab", { name: /^Content/ }).click();
    for (let more = page.getByRole("button", { name: /^Show more of/ }); (await more.count()) > 0; )
      await more.click();
    const hrefs = await page
      .getByRole("link")
      .evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
    expect(hrefs.filter((href) => !/^(#|https?:\/\/)/.test(href))).toEqual([]);
    await isUnharmed();
  });

  it("RE-30 lists, opens and saves calls with hostile contents, and sources with hostile names", async () => {
    const headers = { "content-type": "application/json" };
    for (const operation of PAGE_TEXTS.slice(0, 30)) {
      await fetch(`${served.url}/call`, {
        method: "POST",
        headers,
        body: JSON.stringify({ operation, input: operation }),
      });
    }
    await callOverHttp(
      served.url,
      "own.form",
      Object.fromEntries(PAGE_TEXTS.slice(0, 20).map((text) => [text, text])),
    );
    await inspector.view("Calls");
    await shows(SEEN_TEXTS[0] ?? "");
    const list = page.getByRole("listbox", { name: "Calls, newest first" });
    for (const at of [0, 1, 5, 12]) {
      await list.getByRole("option").nth(at).click();
      await page.getByRole("button", { name: "Export as fixture" }).waitFor();
    }
    await page.getByRole("tab", { name: "By operation" }).click();
    await inspector.view("Sources");
    await page.getByRole("article").first().waitFor();
    await shows(PAGE_TEXTS[0] ?? "");
    for (const summary of await page.locator("main summary").all()) await summary.click();
    await isUnharmed();
  });

  it("RE-30 decodes hostile results as the texts they are", async () => {
    await inspector.view("Decode");
    const given = page.getByRole("textbox", { name: "Tool result" });
    const lines = PAGE_TEXTS.slice(0, MOST_AT_ONCE / 2).flatMap((text) => [
      { content: [{ type: "text", text }], structuredContent: { [text]: text } },
      { jsonrpc: "2.0", id: 1, error: { code: -32_000, message: text, data: { [text]: text } } },
    ]);
    await given.fill(lines.map((line) => JSON.stringify(line)).join("\n"));
    const results = page.getByRole("listbox", { name: "Results" });
    await results.waitFor();
    await results.focus();
    for (let step = 0; step < 30; step += 1) await page.keyboard.press("ArrowDown");
    await given.fill(`${PAGE_TEXTS[0]} is no JSON`);
    await soon(() => given.getAttribute("aria-invalid")).toBe("true");
    await given.fill(JSON.stringify({ content: [{ type: "text", text: SEEN_TEXTS[1] }] }));
    await lookAtAllSides();
    await shows(SEEN_TEXTS[1] ?? "");
    await isUnharmed();
  });

  it("RE-30 would have seen an element, an attribute, a request or a script of somebody else", async () => {
    await page.evaluate(() => {
      const image = document.createElement("img");
      image.setAttribute("srcset", "http://evil.example/x.png 1x");
      image.src = "http://evil.example/x.png";
      document.body.append(document.createElement("iframe"), image);
      image.remove();
      Object.assign(window, { __pwned: 1 });
    });
    await soon(async () => (await strangeIn(page)).strange.length).toBeGreaterThanOrEqual(3);
    expect((await strangeIn(page)).pwned).toBe(1);
    expect(inspector.faults.join()).toContain("Content Security Policy");
  });
});
