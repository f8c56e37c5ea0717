import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runOpenLoop } from "../../bench/inspector/open-loop.js";
import { manyOperationsModule } from "../inspector-operations.ts";
import { drawn, openInspector, soon } from "../inspector-page.ts";
import { callOverHttp, type InspectorProject, openInspectorProject } from "../inspector-project.ts";
import type { ServedFolder } from "../installed-folder.ts";
import { browserSuite, openBrowser } from "../open-browser.ts";

const OPERATIONS = 10_000;
/** Of a page that draws only what is seen. */
const MOST_ELEMENTS = 3_000;
/** Calls that the server and the page remember. */
const KEPT = 5_000;

/** Tells how many milliseconds of processor time the thread that draws a page has used. */
async function watchThread(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const seconds = metrics.find(({ name }) => name === "ThreadTime")?.value;
    if (seconds === undefined) throw new Error("This browser does not tell the time of a thread.");
    return seconds * 1_000;
  };
}

browserSuite("an inspector with a lot to show", () => {
  let browser: Browser;
  let project: InspectorProject;
  let served: ServedFolder;
  beforeAll(async () => {
    project = openInspectorProject();
    project.write("ops/many.mjs", manyOperationsModule(OPERATIONS));
    [browser, served] = await Promise.all([openBrowser(), project.open()]);
  });
  afterAll(async () => {
    await browser?.close();
    await project?.remove();
  });

  const request = (): string => {
    const { port } = new URL(served.url);
    const head = [
      "GET /api/post/echo?text=x HTTP/1.1",
      `host: 127.0.0.1:${port}`,
      "accept: application/json",
    ];
    return [...head, "", ""].join("\r\n");
  };
  const load = (perSecond: number, seconds: number) =>
    runOpenLoop(Number(new URL(served.url).port), request(), { perSecond, seconds, connections: 8 });

  it("RE-30 lists 10,000 operations at once, and finds one while it is typed without a stutter", async () => {
    const inspector = await openInspector(browser, served.url, { path: "/inspect/#/decode" });
    const { page } = inspector;
    await page.getByRole("textbox", { name: "Tool result" }).waitFor();
    const threadMs = await watchThread(page);
    const before = await threadMs();
    await page.evaluate(async () => {
      location.hash = "#/operations";
      while (document.querySelector("[role=listbox] [role=option]") === null) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    });
    const shownMs = (await threadMs()) - before;
    await page.getByText("10,016 operations").waitFor();
    const steps: number[] = [];
    /** Does one thing and waits until it was drawn: whatever it costs is one stutter at most. */
    const step = async (act: () => Promise<unknown>): Promise<void> => {
      const started = await threadMs();
      await act();
      await drawn(page);
      steps.push((await threadMs()) - started);
    };
    const press = (key: string) => step(() => page.keyboard.press(key));
    await page.getByRole("combobox", { name: "Search operations" }).focus();
    for (const letter of "number 9876") await press(letter);
    const found = page.getByRole("listbox", { name: "Operations" }).getByRole("option");
    await soon(() => found.count()).toBe(1);
    for (let back = 0; back < 11; back += 1) await press("Backspace");
    for (const letter of "operation") await press(letter);
    for (let down = 0; down < 30; down += 1) await press("ArrowDown");
    for (let turn = 0; turn < 20; turn += 1) {
      await step(() =>
        page.evaluate((top) => document.querySelector("[role=listbox]")?.scrollTo({ top }), turn * 20_000),
      );
    }
    const longestStep = Math.max(...steps);
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    console.log(
      `10,000 operations, in processor time of the page: listed after ${shownMs.toFixed(0)} ms; longest step while typing and scrolling ${longestStep.toFixed(0)} ms; ${elements} elements`,
    );
    expect(shownMs).toBeLessThan(2_000);
    expect(longestStep).toBeLessThan(200);
    expect(elements).toBeLessThan(MOST_ELEMENTS);
    await found.first().waitFor();
    await inspector.choose("big.operation_09999");
    expect(inspector.faults).toEqual([]);
    await inspector.close();
  });

  it("RE-30 answers a click while 1,000 calls a second pass by, and shows them", async () => {
    const inspector = await openInspector(browser, served.url, { path: "/inspect/#/calls" });
    const { page } = inspector;
    await callOverHttp(served.url, "post.echo", { text: "first" });
    await page.getByRole("listbox", { name: "Calls, newest first" }).waitFor();
    const threadMs = await watchThread(page);
    const loading = load(1_000, 2);
    const clicks: number[] = [];
    /** A click that waits for a timer uses no processor, and lets frames pass. */
    const frames: number[] = [];
    for (const tab of ["By operation", "Calls", "By operation", "Calls"]) {
      await page.waitForTimeout(300);
      const started = await threadMs();
      const passed = await page.evaluate(async (name) => {
        const button = [...document.querySelectorAll<HTMLElement>("[role=tab]")].find(
          ({ textContent }) => textContent === name,
        );
        button?.click();
        let count = 0;
        while (button?.getAttribute("aria-selected") !== "true") {
          await new Promise((resolve) => requestAnimationFrame(resolve));
          count += 1;
        }
        return count;
      }, tab);
      clicks.push((await threadMs()) - started);
      frames.push(passed);
    }
    const { perSecond, p95 } = await loading;
    console.log(
      `${perSecond.toFixed(0)} calls a second, p95 ${p95.toFixed(0)} ms; slowest click ${Math.max(...clicks).toFixed(0)} ms of the page's processor time, ${Math.max(...frames)} frames`,
    );
    expect(Math.max(...clicks)).toBeLessThan(500);
    expect(Math.max(...frames)).toBeLessThanOrEqual(5);
    await soon(() => page.getByText(/^2,0\d\d calls$/).count()).toBe(1);
    expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(MOST_ELEMENTS);
    expect(inspector.faults).toEqual([]);
    await inspector.close();
  });

  it("RE-30 remembers no more than it says after 20,000 calls, in the page and in the gateway", async () => {
    const inspector = await openInspector(browser, served.url, { path: "/inspect/#/calls" });
    const { page } = inspector;
    const heap = async (): Promise<number> => {
      const text = await (await fetch(`${served.url}/metrics`)).text();
      return Number(/^nodejs_heap_size_used_bytes (\d+)/m.exec(text)?.[1]);
    };
    await load(1_500, 4);
    await soon(() => page.getByText(/^5,000 calls$/).count()).toBe(1);
    const before = await heap();
    await load(1_500, 8);
    const first = page.getByRole("listbox", { name: "Calls, newest first" }).getByRole("option").first();
    await first.waitFor();
    await soon(() => page.getByText(/^5,000 calls$/).count()).toBe(1);
    const after = await heap();
    console.log(
      `heap of the gateway: ${(before / 2 ** 20).toFixed(0)} MB, then ${(after / 2 ** 20).toFixed(0)} MB`,
    );
    expect(after - before).toBeLessThan(80 * 2 ** 20);
    const fresh = await openInspector(browser, served.url, { path: "/inspect/#/calls" });
    await soon(() => fresh.page.getByText(/^[\d,]+ calls$/).textContent()).toBe(
      `${KEPT.toLocaleString("en")} calls`,
    );
    expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(MOST_ELEMENTS);
    await Promise.all([fresh.close(), inspector.close()]);
  });
});
