import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type InspectorPage, openInspector, soon } from "../inspector-page.ts";
import { browserSuite } from "../open-browser.ts";
import { useInspectorProject } from "../use-inspector-project.ts";

const TEXT_RESULT = { content: [{ type: "text", text: '{"parcels":[{"id":"P-1","kg":2}],"total":1}' }] };
const RPC_ERROR = { jsonrpc: "2.0", id: 3, error: { code: -32_602, message: "Unknown tool: fly" } };

browserSuite("decoding in the inspector", () => {
  const used = useInspectorProject();
  let inspector: InspectorPage;
  let page: Page;
  beforeEach(async () => {
    inspector = await openInspector(used.browser, used.served.url, { path: "/inspect/#/decode" });
    page = inspector.page;
  });
  afterEach(() => inspector?.close());

  const given = (): Locator => page.getByRole("textbox", { name: "Tool result" });
  const found = (): Locator => page.getByRole("region", { name: "What it is" });

  it("RE-30 X-2 tells an MCP result with JSON in its text, and where its data is from", async () => {
    await given().fill(JSON.stringify(TEXT_RESULT));
    await found().getByRole("heading", { name: "MCP's own result" }).waitFor();
    await found().getByText("from JSON in its text", { exact: true }).first().waitFor();
    await found().getByText("parcels").first().waitFor();
    expect(await page.locator("#decode-status").textContent()).toContain("MCP's own result");
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 X-2 tells a tool envelope that waybill itself has written, and that it loses nothing", async () => {
    const { stdout } = await used.project.run(["encode", "--to", "tool-envelope"], {
      stdin: JSON.stringify({
        data: { id: "P-7" },
        meta: { source: "local", operationId: "a.b", timestamp: 1 },
      }),
    });
    expect(stdout).toContain("__ENVELOPE_V1__:");
    await given().fill(stdout);
    await found().getByRole("heading", { name: "ToolEnvelope V1" }).waitFor();
    await found().getByText("from an envelope in its content").first().waitFor();
    await found().getByText("P-7").first().waitFor();
  });

  it("RE-30 X-2 says what is odd about a result with letters that nobody sees", async () => {
    const odd = { content: [{ type: "text", text: "fine\u200b\u202e" }], structuredContent: { a: 1 } };
    await given().fill(JSON.stringify(odd));
    await found()
      .getByRole("list", { name: "What is odd" })
      .getByText(/hidden_in_text/)
      .waitFor();
  });

  it("RE-30 X-2 tells results line by line, a failed call among them, and shows the one that is chosen", async () => {
    await given().fill(`${JSON.stringify(TEXT_RESULT)}\n${JSON.stringify(RPC_ERROR)}\n`);
    const results = found().getByRole("listbox", { name: "Results" });
    await soon(() => results.getByRole("option").count()).toBe(2);
    await results.focus();
    await page.keyboard.press("ArrowDown");
    await found().getByRole("heading", { name: "A call that failed" }).waitFor();
    await found().getByText("Unknown tool: fly").first().waitFor();
  });

  it("RE-30 X-2 says at the text why garbage is none, and keeps the text while other views are shown", async () => {
    await given().fill('{"content": [}');
    await soon(() => given().getAttribute("aria-invalid")).toBe("true");
    const said = page.locator("#decode-status");
    await soon(() => said.textContent()).toMatch(/column|line|JSON/);
    expect(await given().getAttribute("aria-describedby")).toContain("decode-status");
    await inspector.view("Sources");
    await page.getByRole("article", { name: "depot" }).waitFor();
    await inspector.view("Decode");
    expect(await given().inputValue()).toBe('{"content": [}');
    await page.getByRole("button", { name: "Clear" }).click();
    expect(await given().inputValue()).toBe("");
  });

  it("RE-30 X-2 reads a file, and its own examples, each as what it is called", async () => {
    const file = join(used.project.path, "result.json");
    writeFileSync(file, JSON.stringify(TEXT_RESULT));
    await page.getByLabel("File to decode").setInputFiles(file);
    await found().getByRole("heading", { name: "MCP's own result" }).waitFor();
    const examples = page.getByRole("group", { name: "Examples" }).getByRole("button");
    const heads: (string | null)[] = [];
    for (const example of await examples.all()) {
      await page.getByRole("button", { name: "Clear" }).click();
      await found().getByText("Nothing to decode yet").waitFor();
      await example.click();
      await soon(() => found().getAttribute("aria-busy")).toBe("false");
      heads.push(await found().getByRole("article").first().getAttribute("aria-label"));
    }
    expect(heads).toEqual(["MCP's own result", "ToolEnvelope V1", expect.any(String)]);
    expect(inspector.faults).toEqual([]);
    expect(inspector.elsewhere).toEqual([]);
  });
});
