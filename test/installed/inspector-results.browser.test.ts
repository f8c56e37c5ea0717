import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterEach, expect, it } from "vitest";
import { copied, type InspectorPage, soon } from "../inspector-page.ts";
import { hasProgram } from "../installed-folder.ts";
import { browserSuite } from "../open-browser.ts";
import { useInspectorPage, useInspectorProject } from "../use-inspector-project.ts";

/** Quotes, a line break, what shells and scripts act on, and letters from elsewhere. */
const AWKWARD = 'it\'s "so" $HOME `id` !! \\ %s\n<b>é 包裹</b> #&?=';

browserSuite("a result in the inspector", () => {
  const used = useInspectorProject();
  let inspector: InspectorPage;
  let page: Page;
  useInspectorPage(used, (opened) => {
    inspector = opened;
    page = opened.page;
  });
  afterEach(() => {
    expect(inspector.faults).toEqual([]);
    expect(inspector.elsewhere).toEqual([]);
  });

  const result = (): Locator => page.getByRole("region", { name: "Result", exact: true });
  const show = (side: string | RegExp): Promise<void> => result().getByRole("tab", { name: side }).click();
  const run = async (operation: string): Promise<void> => {
    await inspector.choose(operation);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await result().waitFor();
  };
  const runEcho = async (): Promise<void> => {
    await inspector.choose("post.echo");
    await page.getByRole("radio", { name: "JSON" }).check();
    await page.getByRole("textbox", { name: "Input as JSON" }).fill(JSON.stringify({ text: AWKWARD }));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await result().waitFor();
  };

  it("RE-30 shows rows as a table that can be sorted, and saves them", async () => {
    await run("post.rows");
    const cells = (): Promise<string[]> => result().getByRole("row").getByRole("cell").allTextContents();
    expect((await cells()).join(" ")).toBe("P-1 Lisbon 2.5 P-2 Osaka 12 P-3 Accra 0.3");
    await result().getByRole("button", { name: /^kg/ }).click();
    await soon(async () => (await cells()).filter((_, at) => at % 3 === 2)).toEqual(["0.3", "2.5", "12"]);
    await result().getByRole("button", { name: /^kg/ }).click();
    await soon(async () => (await cells()).filter((_, at) => at % 3 === 2)).toEqual(["12", "2.5", "0.3"]);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      result().getByRole("button", { name: "Download CSV" }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/\.csv$/);
  });

  it("RE-30 shows numbers over time as a chart, whose points can be read without a mouse", async () => {
    await run("post.series");
    await result().getByRole("button", { name: "Chart" }).click();
    const plot = result().getByRole("slider", { name: "Point of the chart" });
    await soon(() => result().locator("figure path").count()).toBeGreaterThan(2);
    await plot.focus();
    await page.keyboard.press("Home");
    await soon(() => plot.getAttribute("aria-valuetext")).toMatch(/parcels 40.*late 0/);
    await page.keyboard.press("ArrowRight");
    await soon(() => plot.getAttribute("aria-valuetext")).toMatch(/parcels 47.*late 1/);
  });

  it("RE-30 shows images and plays sounds from memory, and every block of the content", async () => {
    await run("depot.picture");
    const image = result().getByRole("img").first();
    await soon(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(1);
    const sound = result().locator("audio");
    await soon(() => sound.evaluate((element) => (element as HTMLAudioElement).duration)).toBeCloseTo(
      0.01,
      2,
    );
    await show(/^Content/);
    const blocks = result().getByRole("listitem");
    await soon(() => blocks.count()).toBeGreaterThanOrEqual(4);
    const link = result().getByRole("link", { name: "https://example.com/point" });
    expect([await link.getAttribute("rel"), await link.getAttribute("target")]).toEqual([
      "noopener noreferrer",
      "_blank",
    ]);
  });

  it("RE-30 marks in the tree what was fitted to the schema, and shows what came back before that", async () => {
    await run("post.price");
    await result()
      .getByText(/fitted to the schema: 1 stripped, 1 filled in, 1 converted/)
      .waitFor();
    const tree = result().getByRole("tree", { name: "Data" });
    await soon(() => tree.getByRole("treeitem", { name: /total/ }).textContent()).toMatch(/12\.5.*converted/);
    await soon(() => tree.getByRole("treeitem", { name: /currency/ }).textContent()).toMatch(
      /EUR.*(filled|default)/,
    );
    await soon(() => tree.textContent()).toMatch(/surplus.*(stripped|left out|removed)/);
    await show("Raw");
    const raw = await result().getByRole("region", { name: "Raw answer" }).textContent();
    expect(JSON.parse(raw ?? "")).toEqual({ total: "12.5", surplus: "goes" });
    await show("Envelope");
    await result().getByRole("tree", { name: "Envelope" }).getByText("operationId").waitFor();
  });

  it("RE-30 says where data was found that was JSON in text", async () => {
    await run("depot.quote");
    await result()
      .getByText(/from JSON in its text/)
      .first()
      .waitFor();
    await result().getByRole("tree", { name: "Data" }).getByText("north").waitFor();
  });

  it("RE-30 X-3 shows all formats side by side, with what each would lose and what it would make up", async () => {
    await run("depot.picture");
    await show("Formats");
    const format = (name: string): Locator => result().getByRole("region", { name, exact: true });
    const names = [
      "ToolEnvelope V1",
      "Tiered response envelope V1.0",
      "Structured tool response",
      "MCP's own result",
      "Waybill's ResponseEnvelope",
    ];
    const boxes = await Promise.all(
      names.map(async (name) => {
        await format(name)
          .getByRole("region", { name: `Result as ${name}` })
          .waitFor();
        return await format(name).boundingBox();
      }),
    );
    expect(boxes.some((box, at) => at > 0 && box?.y === boxes[0]?.y && box?.x !== boxes[0]?.x)).toBe(true);
    await soon(() => format("Waybill's ResponseEnvelope").textContent()).toMatch(/loses nothing/);
    await soon(() => format("MCP's own result").textContent()).toMatch(/loses \d+ things?/);
    const told = (name: string, heading: "Lost" | "Made up"): Promise<string[]> =>
      format(name).getByRole("list", { name: heading }).getByRole("listitem").allTextContents();
    expect((await told("MCP's own result", "Lost")).join(" ")).toMatch(/\/durationMs \d/);
    expect(await format("MCP's own result").getByRole("heading").allTextContents()).toEqual([
      "MCP's own result",
      "Lost",
    ]);
    const tiered = "Tiered response envelope V1.0";
    expect(await format(tiered).getByRole("heading").allTextContents()).toEqual([tiered, "Lost", "Made up"]);
    expect((await told(tiered, "Made up")).join(" ")).toMatch(/\/tier "community"/);
    expect((await told(tiered, "Lost")).join(" ")).not.toMatch(/\/tier/);
    const encoded = await result().getByRole("region", { name: "Result as ToolEnvelope V1" }).textContent();
    expect(encoded).toContain("__ENVELOPE_V1__:");
  });

  it("RE-30 gives a call as curl that answers the same in a shell", async () => {
    if (!hasProgram("curl")) return;
    await runEcho();
    const line = await copied(page, result().getByRole("button", { name: "Copy as curl" }));
    const ran = await used.project.shell(line.replace(/^curl /, "curl -sS "));
    expect(ran.stderr).toBe("");
    expect(JSON.parse(ran.stdout)).toEqual({ text: AWKWARD });
  });

  it("RE-30 gives a call as waybill call that answers the same in a shell", async () => {
    await runEcho();
    const line = await copied(page, result().getByRole("button", { name: "Copy as waybill call" }));
    expect(line).toMatch(/waybill call post\.echo/);
    // The command is spelt as it was started; on this PATH it is the installed one.
    const ran = await used.project.shell(line.replace(/^npx (?:--no )?/, ""));
    expect(ran).toMatchObject({ code: 0 });
    expect(JSON.parse(ran.stdout)).toEqual({ text: AWKWARD });
  });

  it("RE-30 gives a call as a program that answers the same", async () => {
    await runEcho();
    const program = await copied(page, result().getByRole("button", { name: "Copy as TypeScript" }));
    writeFileSync(join(used.project.path, "copied.mjs"), program);
    const ran = await used.project.shell(`${process.execPath} copied.mjs`);
    expect(ran.stderr).toBe("");
    expect(ran.stdout).toContain("包裹");
    expect(ran.code).toBe(0);
  });
});
