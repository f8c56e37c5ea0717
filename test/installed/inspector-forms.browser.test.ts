import type { Locator, Page } from "playwright-core";
import { expect, it } from "vitest";
import { drawn, type InspectorPage, soon } from "../inspector-page.ts";
import { callOverHttp } from "../inspector-project.ts";
import { browserSuite } from "../open-browser.ts";
import { useInspectorPage, useInspectorProject } from "../use-inspector-project.ts";

const DESK = `
const common = { namespace: "desk", version: "1.0.0", description: "Of the desk." };
const way = (title, kind) => ({ title, type: "object", required: ["kind"], properties: { kind: { const: kind } } });
export const pick = {
  ...common, id: "desk.pick", name: "pick", type: "query", handler: (input) => input,
  inputSchema: {
    type: "object", required: ["country", "size", "only", "way"], additionalProperties: { type: "string" },
    properties: {
      size: { title: "Size", enum: ["small", "large"] },
      country: { title: "Country", enum: ["DE", "FR", "NL", "PT", "ES", "IT"] },
      only: { title: "Only", enum: ["this"] },
      way: { title: "Way", oneOf: [way("By post", "post"), way("By van", "van")] },
    },
  },
};
export const words = {
  ...common, id: "desk.words", name: "words", type: "subscription", inputSchema: { type: "object", properties: {} },
  async *handler() { for (let at = 1; at <= 3; at++) yield { at, words: "many words in a row ".repeat(20) }; },
};
`;

browserSuite("the forms of the inspector", () => {
  const used = useInspectorProject((project) => project.write("ops/desk.mjs", DESK));
  let inspector: InspectorPage;
  let page: Page;
  useInspectorPage(used, (opened) => {
    inspector = opened;
    page = opened.page;
  });

  const run = (): Locator => page.getByRole("button", { name: "Run", exact: true });
  const result = (): Locator => page.getByRole("region", { name: "Result", exact: true });
  const rawInput = async (): Promise<unknown> => {
    await page.getByRole("radio", { name: "JSON" }).check();
    return JSON.parse(await page.getByRole("textbox", { name: "Input as JSON" }).inputValue());
  };
  const boxOf = async (place: Locator) => (await place.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };

  it("RE-30 chooses nothing for anybody: what is required and not chosen is said at its field", async () => {
    await inspector.choose("desk.pick");
    expect(await rawInput()).toEqual({ only: "this" });
    await page.getByRole("radio", { name: "Form" }).check();
    const country = page.getByLabel("Country");
    expect(await country.locator("option:checked").textContent()).toBe("Choose…");
    await run().click();
    await page.getByText("The input does not fit its schema: 3 problems.").waitFor();
    await soon(() => page.getByText("Required", { exact: true }).count()).toBe(3);
    expect(await country.getAttribute("aria-invalid")).toBe("true");
    const first = page.getByRole("radio", { name: "small" });
    await soon(() => first.evaluate((radio) => radio === document.activeElement)).toBe(true);
    await first.check();
    await country.selectOption("PT");
    await page.getByRole("radio", { name: "By van" }).check();
    await run().click();
    await result().getByText("✓ ok", { exact: true }).waitFor();
    expect(await rawInput()).toEqual({ only: "this", size: "small", country: "PT", way: { kind: "van" } });
  });

  it("RE-30 says that an operation takes no input, and offers other members where they are allowed", async () => {
    await inspector.choose("post.rows");
    await page.getByText("Takes no input.").waitFor();
    expect(await page.getByRole("button", { name: /Add member/ }).count()).toBe(0);
    await inspector.choose("desk.pick");
    const name = page.getByRole("textbox", { name: /^Name of a new member/ });
    expect(await name.count()).toBe(0);
    await page.getByRole("button", { name: /Add member/ }).click();
    await soon(() => name.evaluate((input) => input === document.activeElement)).toBe(true);
    await page.keyboard.type("colour");
    await page.keyboard.press("Enter");
    await page.getByLabel("colour", { exact: true }).fill("teal");
    expect(await rawInput()).toEqual({ only: "this", colour: "teal" });
  });

  it("RE-30 opens the history at its button, with a title", async () => {
    const history = page.getByRole("region", { name: "Inputs run before" });
    const button = page.getByRole("button", { name: "History" });
    for (const operation of ["post.rows", "post.send"]) {
      await inspector.choose(operation);
      await button.click();
      await history.getByRole("heading", { name: "Inputs run before" }).waitFor();
      const [list, at] = [await boxOf(history), await boxOf(button)];
      const between = list.y > at.y ? list.y - at.y - at.height : at.y - list.y - list.height;
      expect(between).toBeGreaterThanOrEqual(0);
      expect(between).toBeLessThan(12);
      expect(list.x).toBeLessThanOrEqual(at.x);
      expect(list.x + list.width).toBeGreaterThan(at.x);
      await page.keyboard.press("Escape");
    }
  });

  it("RE-30 says once that an input is there again, and that its secrets are not", async () => {
    const told = page.getByText("What you typed before is here again; secret fields were left empty.");
    await inspector.choose("post.send");
    await page.getByLabel("Name", { exact: true }).fill("Eve");
    await page.getByLabel("Door code").fill("secret-10");
    await page.reload();
    await told.waitFor();
    await page.getByLabel("Name", { exact: true }).fill("Eva");
    await told.waitFor({ state: "detached" });
    await page.reload();
    await page.getByText("What you typed before is here again.").waitFor();
    expect(await told.count()).toBe(0);
  });

  it("RE-30 counts values the same everywhere, and shows long ones whole", async () => {
    await inspector.choose("desk.words");
    await run().click();
    await page.getByText("3 values").waitFor();
    const value = page.getByRole("region", { name: "Value 3" });
    expect(await value.locator("dt", { hasText: "Value no." }).locator("+ dd").textContent()).toBe("3");
    const list = page.getByRole("listbox", { name: "Values, the newest first" });
    expect(await list.evaluate((box) => box.scrollWidth - box.clientWidth)).toBeLessThanOrEqual(0);
  });

  it("RE-30 calls what was cancelled so in every view, and no error in any", async () => {
    await inspector.choose("post.ticks");
    await run().click();
    await page.getByRole("region", { name: /^Value \d+$/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("region", { name: "Outcome" }).locator(".badge", { hasText: "cancelled" }).waitFor();
    await page.getByRole("link", { name: "Show in Calls" }).click();
    const call = page.getByRole("region", { name: "The chosen call" });
    await call.getByText("cancelled").waitFor();
    const stop = new AbortController();
    const body = JSON.stringify({ operation: "post.slow", input: {} });
    const headers = { "content-type": "application/json" };
    const slow = fetch(`${used.served.url}/call`, { method: "POST", headers, body, signal: stop.signal });
    const calls = page.getByRole("listbox", { name: "Calls, newest first" });
    await calls.getByRole("option", { name: /post\.slow\s*running/ }).waitFor();
    stop.abort();
    await slow.catch(() => {});
    await calls.getByRole("option", { name: /post\.slow\s*cancelled/ }).waitFor();
    await inspector.view("Sources");
    const source = page.getByRole("article", { name: "local" });
    expect(await source.locator("dt", { hasText: "Errors" }).locator("+ dd").textContent()).toBe("0");
    expect(inspector.faults).toEqual([]);
  });

  it("RE-30 shows on a narrow screen the figures of operations, the whole legend, and a bar of two rows", async () => {
    await callOverHttp(used.served.url, "post.echo", { text: "narrow" });
    await page.setViewportSize({ width: 390, height: 844 });
    await inspector.view("Calls");
    await page.getByRole("tab", { name: "By operation" }).click();
    const row = page.getByRole("row", { name: /post\.echo/ });
    await row.waitFor();
    await drawn(page);
    const ends = async (place: Locator): Promise<number> => {
      const { x, width } = await boxOf(place);
      return width > 0 ? x + width : 1_000;
    };
    for (const column of ["Calls", "Errors", "p50", "p95"]) {
      const head = page.getByRole("columnheader", { name: new RegExp(`^${column}`) });
      expect(await ends(head), column).toBeLessThanOrEqual(390);
    }
    const legend = page.locator(".legend");
    const { y, height } = await boxOf(legend);
    const key = await boxOf(legend.getByText("p95"));
    expect(key.x + key.width).toBeLessThanOrEqual(390);
    expect(key.y + key.height).toBeLessThanOrEqual(y + height);
    const bar = page.getByRole("banner");
    expect((await boxOf(bar)).height).toBeLessThan(100);
  });
});
