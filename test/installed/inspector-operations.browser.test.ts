import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect, it } from "vitest";
import { drawn, type InspectorPage, soon } from "../inspector-page.ts";
import { browserSuite } from "../open-browser.ts";
import { useInspectorPage, useInspectorProject } from "../use-inspector-project.ts";

browserSuite("the operations of a gateway in the inspector", () => {
  const used = useInspectorProject();
  let inspector: InspectorPage;
  let page: Page;
  useInspectorPage(used, (opened) => {
    inspector = opened;
    page = opened.page;
  });

  const search = (): Locator => page.getByRole("combobox", { name: "Search operations" });
  const list = (): Locator => page.getByRole("listbox", { name: "Operations" });
  const run = (): Locator => page.getByRole("button", { name: "Run", exact: true });
  const result = (): Locator => page.getByRole("region", { name: "Result" });
  const stopped = (): string => {
    const file = join(used.project.path, "ops/stopped.log");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  const rawInput = async (): Promise<unknown> => {
    await page.getByRole("radio", { name: "JSON" }).check();
    return JSON.parse(await page.getByRole("textbox", { name: "Input as JSON" }).inputValue());
  };

  it("RE-30 finds an operation, fills in its form by labels, runs it and shows what came of it", async () => {
    await search().fill("send a parcl");
    await soon(() => list().getByRole("option").first().textContent()).toContain("post.send");
    // Enter chooses what the words find, also before the answer to them is there.
    await search().fill("sending parcels");
    await search().press("Enter");
    await page.getByRole("heading", { name: "post.send" }).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("Ada");
    await page.getByLabel("Country").selectOption("PT");
    await page.getByRole("textbox", { name: "Article" }).fill("A-1");
    await page.getByRole("textbox", { name: "Count" }).fill("2");
    await page.getByRole("button", { name: "Add item to Items" }).click();
    await page.getByRole("group", { name: "Item 2" }).getByRole("textbox", { name: "Article" }).fill("A-2");
    await page.getByRole("button", { name: "Move item 2 up" }).click();
    await page.getByRole("radio", { name: "By date" }).check();
    await page.getByLabel("On", { exact: true }).fill("2026-12-24");
    const file = join(used.project.path, "label.txt");
    writeFileSync(file, "fragile");
    await page.getByLabel("Label", { exact: true }).setInputFiles(file);
    await page.getByText(/label\.txt/).waitFor();
    expect(await page.getByLabel("Priority").inputValue()).toBe("3");
    await page.getByLabel("Door code").fill("secret-7");
    await run().click();
    await result().getByText("✓ ok", { exact: true }).waitFor();
    await result().getByRole("tab", { name: "Raw" }).click();
    const raw = JSON.parse(
      (await result().getByRole("region", { name: "Raw answer" }).textContent()) ?? "",
    ) as object;
    expect(JSON.stringify(raw)).toContain(Buffer.from("fragile").toString("base64"));
    expect(await rawInput()).toEqual({
      to: { name: "Ada", country: "PT" },
      items: [
        { sku: "A-2", count: 1 },
        { sku: "A-1", count: 2 },
      ],
      speed: { kind: "date", on: "2026-12-24" },
      label: Buffer.from("fragile").toString("base64"),
      priority: 3,
      door: "secret-7",
    });
    expect(inspector.faults).toEqual([]);
    expect(inspector.elsewhere).toEqual([]);
  });

  it("RE-30 shows at its field what is wrong with an input, and runs it once that is put right", async () => {
    await inspector.choose("post.send");
    await page.getByLabel("Name", { exact: true }).fill("A");
    await run().click();
    const name = page.getByLabel("Name", { exact: true });
    await soon(() => name.getAttribute("aria-invalid")).toBe("true");
    const describedBy = async (field: Locator): Promise<string> => {
      const ids = ((await field.getAttribute("aria-describedby")) ?? "").split(" ");
      const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
      return texts.join(" ");
    };
    expect(await describedBy(name)).toMatch(/must be .*2.*; it is/);
    const article = page.getByRole("textbox", { name: "Article" });
    await soon(() => article.getAttribute("aria-invalid")).toBe("true");
    await page.getByText(/does not fit its schema/).waitFor();
    await soon(() => page.getByRole("button", { name: "Run anyway" }).count()).toBe(1);
    await name.fill("Ada");
    await article.fill("A-1");
    await soon(() => name.getAttribute("aria-invalid")).not.toBe("true");
    await run().click();
    await result().getByText("✓ ok", { exact: true }).waitFor();
  });

  it("RE-30 keeps a value through form and JSON and back, what the form has no place for included", async () => {
    await inspector.choose("post.send");
    await page.getByLabel("Name", { exact: true }).fill("Ada");
    const input = (await rawInput()) as Record<string, unknown>;
    expect(input).toMatchObject({ to: { name: "Ada", country: "DE" }, priority: 3 });
    const area = page.getByRole("textbox", { name: "Input as JSON" });
    await area.fill(JSON.stringify({ ...input, to: { name: "Bo", country: "NL", floor: 3 } }));
    await page.getByRole("radio", { name: "Form" }).check();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Bo");
    expect(await rawInput()).toMatchObject({ to: { name: "Bo", country: "NL", floor: 3 } });
    await area.fill('{ "to": \n  nothing }');
    await page
      .getByText(/line 2, column 3/)
      .first()
      .waitFor();
    await soon(() => run().isDisabled()).toBe(true);
  });

  it("RE-30 offers an earlier input again after the page was loaded anew, without its secrets", async () => {
    await inspector.choose("post.send");
    const area = page.getByRole("textbox", { name: "Input as JSON" });
    await rawInput();
    await area.fill(
      JSON.stringify({ to: { name: "Cleo", country: "FR" }, items: [{ sku: "B" }], door: "secret-8" }),
    );
    await run().click();
    await result().getByText("✓ ok", { exact: true }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: /History/ }).click();
    await page.getByRole("region", { name: "Inputs run before" }).getByText(/Cleo/).click();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Cleo");
    expect(await page.getByLabel("Door code").inputValue()).toBe("");
    expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain("secret-8");
    await page.getByRole("button", { name: /History/ }).click();
    await page.getByRole("button", { name: "Forget all" }).click();
    expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain("Cleo");
  });

  it("RE-30 keeps a half-typed input through a reload of the page, each operation its own, without its secrets", async () => {
    await inspector.choose("post.send");
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("Dora");
    await page.getByRole("textbox", { name: "Article" }).fill("half-ty");
    await page.getByLabel("Door code").fill("secret-9");
    await inspector.choose("post.echo");
    await page.getByRole("textbox", { name: "Text", exact: true }).fill("another");
    await page.reload();
    await soon(() => page.getByRole("textbox", { name: "Text", exact: true }).inputValue()).toBe("another");
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("secret-9");
    await inspector.choose("post.send");
    expect(await name.inputValue()).toBe("Dora");
    expect(await page.getByRole("textbox", { name: "Article" }).inputValue()).toBe("half-ty");
    expect(await page.getByLabel("Door code").inputValue()).toBe("");
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await page.reload();
    await name.waitFor();
    expect(await name.inputValue()).toBe("");
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("Dora");
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 cancels a slow call, and its handler sees that", async () => {
    await inspector.choose("post.slow");
    await run().click();
    await page.getByText("looking").first().waitFor();
    await page.getByText("began to look").first().waitFor();
    expect(stopped()).toContain("slow began");
    await page.getByRole("button", { name: /^Cancel/ }).click();
    await soon(stopped).toContain("slow was told to stop");
    await run().waitFor();
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 stops a call whose page is closed", async () => {
    const before = stopped().split("slow was told to stop").length;
    await inspector.choose("post.slow");
    await run().click();
    await page.getByText("looking").first().waitFor();
    await inspector.close();
    await soon(() => stopped().split("slow was told to stop").length).toBe(before + 1);
  });

  it("RE-30 shows the values of a subscription as they come, until it is cancelled", async () => {
    await inspector.choose("post.ticks");
    await run().click();
    const values = page.getByRole("listbox", { name: "Values, the newest first" });
    await values
      .getByText('"tick":5', { exact: false })
      .or(values.getByText(/tick.{0,4}5/))
      .first()
      .waitFor();
    await page.getByRole("button", { name: /^Cancel/ }).click();
    await soon(stopped).toContain("ticks ended");
    await run().waitFor();
    const count = page.getByText(/\d+ values/).first();
    await drawn(page);
    const told = await count.textContent();
    await page.waitForTimeout(300);
    expect(await count.textContent()).toBe(told);
    await values.getByRole("option").last().click();
    await page
      .getByRole("region", { name: /^Value \d+$/ })
      .getByText("tick")
      .first()
      .waitFor();
  });

  it("RE-30 asks the person what a handler asks, and gives the answer to it", async () => {
    await inspector.choose("post.ask");
    await run().click();
    const question = page.getByRole("region", { name: "Question of the operation" });
    await question.getByText("Which colour shall it be?").waitFor();
    await question.getByRole("textbox", { name: "Colour" }).fill("teal");
    await question.getByRole("button", { name: "Accept" }).click();
    await result().getByText("teal").waitFor();
    await run().click();
    await question.getByRole("button", { name: "Decline" }).click();
    await result().getByText("decline").waitFor();
  });

  it("RE-30 asks before it runs what may destroy something", async () => {
    await inspector.choose("post.wipe");
    await run().click();
    const question = page.getByRole("alertdialog");
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "hidden" });
    expect(stopped()).not.toContain("wiped");
    await run().click();
    await question.getByRole("button", { name: "Yes, run it" }).click();
    await result().getByText("✓ ok", { exact: true }).waitFor();
    expect(stopped()).toContain("wiped");
  });

  it("RE-30 tells a tool error from a call that broke", async () => {
    await inspector.choose("post.refuse");
    await run().click();
    await result().getByText("tool error").waitFor();
    await result().getByText("SOLD_OUT").first().waitFor();
    await inspector.choose("post.fail");
    await run().click();
    const error = page.getByRole("region", { name: "Error" });
    await error.getByText("NOT_FOUND").waitFor();
    await error.getByText("There is no parcel P-9.").waitFor();
    await error.getByText("P-1").waitFor();
    // Once, with how long it took, and not in a line above as well.
    expect(await error.getByText(/^✕ failed$/).count()).toBe(1);
    await error.getByText(/^[\d.]+ ms$/).waitFor();
    expect(await page.locator(".run-status").textContent()).toBe("");
  });

  it("RE-30 draws a long id in one piece where there is room for it", async () => {
    used.project.write(
      "ops/long.mjs",
      `export const long = { id: "post.find-what-came-back-last-week", namespace: "post", name: "find-what-came-back-last-week", version: "1.0.0", type: "query", description: "Finds.", handler: () => 1 };`,
    );
    const halves = list()
      .getByRole("option", { name: /last-week/ })
      .locator("bdi");
    await halves.first().waitFor();
    // Of the texts, and not of the boxes around them.
    const [first, second] = await halves.evaluateAll((parts) =>
      parts.map((part) => {
        const text = document.createRange();
        text.selectNodeContents(part);
        return text.getBoundingClientRect();
      }),
    );
    expect(first?.width).toBeGreaterThan(100);
    expect(Math.abs((first?.right ?? 0) - (second?.left ?? 0))).toBeLessThan(1);
  });

  it("RE-30 shows the schemas and who may call, and follows operations that come", async () => {
    await inspector.choose("post.send");
    await page.getByRole("tab", { name: "Input schema" }).click();
    await page
      .getByRole("list", { name: "Outline of the input schema" })
      .getByText("country")
      .first()
      .waitFor();
    await page.getByRole("tab", { name: "About" }).click();
    await page
      .getByText(/Everybody who can reach the gateway/)
      .first()
      .waitFor();
    const link = page.getByRole("link", { name: "https://example.com/parcels" });
    expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
    await page.getByText("<b>nowhere</b>").first().waitFor();
    used.project.write(
      "ops/late.mjs",
      `export const late = { id: "post.late", namespace: "post", name: "late", version: "1.0.0", type: "query", description: "Came late.", handler: () => 1 };`,
    );
    await list()
      .getByRole("option", { name: /post\.late/ })
      .waitFor();
    expect(await page.getByRole("tab", { name: "About" }).getAttribute("aria-selected")).toBe("true");
    expect(inspector.faults).toEqual([]);
  });
});
