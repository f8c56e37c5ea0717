import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { barriersOn } from "../inspector-axe.ts";
import { drawn, openInspector, soon } from "../inspector-page.ts";
import { callOverHttp, type InspectorProject, openInspectorProject } from "../inspector-project.ts";
import { type ServedFolder, scriptedTool } from "../installed-folder.ts";
import { browserSuite, openBrowser } from "../open-browser.ts";

const WIDE = { width: 1_280, height: 800 };
const NARROW = { width: 390, height: 844 };

/** What is looked at, and how one gets there. */
const STATES: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  "the list of operations": async (page) => {
    await go(page, "operations");
    await page.getByRole("listbox", { name: "Operations" }).waitFor();
  },
  "an operation with a form": async (page) => {
    await go(page, "operations/post.send");
    await page.getByRole("button", { name: "Run", exact: true }).waitFor();
    await page.getByRole("radio", { name: "By date" }).check();
  },
  "an input with mistakes": async (page) => {
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/does not fit its schema/).waitFor();
  },
  "an input as JSON": async (page) => {
    await page.getByRole("radio", { name: "JSON" }).check();
  },
  "the schema of an input": async (page) => {
    await page.getByRole("tab", { name: "Input schema" }).click();
  },
  "an operation in words": async (page) => {
    await page.getByRole("tab", { name: "About" }).click();
  },
  "a question": async (page) => {
    await go(page, "operations/post.ask");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("region", { name: "Question of the operation" }).waitFor();
  },
  "a table": (page) => run(page, "post.rows"),
  "a chart": async (page) => {
    await run(page, "post.series");
    await page.getByRole("button", { name: "Chart" }).click();
  },
  media: (page) => run(page, "depot.picture"),
  "blocks of content": (page) => page.getByRole("tab", { name: /^Content/ }).click(),
  "formats side by side": async (page) => {
    await page.getByRole("tab", { name: "Formats" }).click();
    await page
      .getByText(/__ENVELOPE_V1__/)
      .first()
      .waitFor();
  },
  "a tree with marks": (page) => run(page, "post.price"),
  "a raw answer": (page) => page.getByRole("tab", { name: "Raw" }).click(),
  "a call that broke": async (page) => {
    await go(page, "operations/post.fail");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("region", { name: "Error" }).waitFor();
  },
  "a subscription": async (page) => {
    await go(page, "operations/post.ticks");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("region", { name: /^Value \d+$/ }).waitFor();
    await page.getByRole("button", { name: /^Cancel/ }).click();
  },
  "a question before something is destroyed": async (page) => {
    await go(page, "operations/post.wipe");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("alertdialog").waitFor();
  },
  "the list of calls": async (page) => {
    await go(page, "calls");
    await page.getByRole("listbox", { name: "Calls, newest first" }).waitFor();
  },
  "a call and its waterfall": async (page) => {
    // The first call of all, made before the page was opened.
    await go(page, "calls/1");
    await page.getByRole("region", { name: "Waterfall" }).waitFor();
  },
  "calls by operation": async (page) => {
    await go(page, "calls");
    await page.getByRole("tab", { name: "By operation" }).click();
  },
  "the sources": async (page) => {
    await go(page, "sources");
    await page.getByRole("article").first().waitFor();
  },
  "decoding, empty": async (page) => {
    await go(page, "decode");
    await page.getByRole("textbox", { name: "Tool result" }).waitFor();
  },
  "a decoded result": async (page) => {
    await page.getByRole("group", { name: "Examples" }).getByRole("button").nth(1).click();
    await page.getByRole("article").waitFor();
  },
};

async function go(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${place}`);
}

async function run(page: Page, operation: string): Promise<void> {
  await go(page, `operations/${operation}`);
  await page.getByRole("heading", { name: operation }).waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("region", { name: "Result", exact: true }).waitFor();
}

/** How far a page goes beyond its window. */
async function widthBeyond(page: Page): Promise<readonly string[]> {
  const beyond = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  return beyond > 0 ? [`${beyond} px too wide`] : [];
}

browserSuite("the inspector without barriers", () => {
  let browser: Browser;
  let project: InspectorProject;
  let served: ServedFolder;
  beforeAll(async () => {
    project = openInspectorProject();
    project.setTools([
      scriptedTool("twice", "Is there twice."),
      scriptedTool("twice", "Is there twice."),
      ...(JSON.parse(project.read("depot/tools.json")) as object[]),
    ]);
    [browser, served] = await Promise.all([openBrowser(), project.open()]);
    for (const operation of ["post.tour", "post.refuse", "post.fail"])
      await callOverHttp(served.url, operation);
  });
  afterAll(async () => {
    await browser?.close();
    await project?.remove();
  });

  it.each([
    ["light", "wide", WIDE],
    ["dark", "narrow", NARROW],
    ["light", "very narrow", { width: 360, height: 640 }],
  ] as const)(
    "RE-30 has none that axe-core finds and no scrolling sideways, in %s and %s, in any view",
    async (...how) => {
      const [colorScheme, , viewport] = how;
      const context = { colorScheme, viewport, bypassCSP: true, reducedMotion: "reduce" as const };
      const inspector = await openInspector(browser, served.url, { context });
      const { page } = inspector;
      const found: Record<string, readonly string[]> = {};
      for (const [state, reach] of Object.entries(STATES)) {
        await reach(page);
        await drawn(page);
        const barriers = [...(await barriersOn(page)), ...(await widthBeyond(page))];
        if (barriers.length > 0) found[state] = barriers;
      }
      expect(found).toEqual({});
      await inspector.close();
    },
  );

  it("RE-30 is used by keys alone: search, choose, fill in, run, read", async () => {
    const inspector = await openInspector(browser, served.url);
    const { page } = inspector;
    await page.getByRole("listbox", { name: "Operations" }).waitFor();
    const focused = (): Promise<string> =>
      page.evaluate(() => {
        const element = document.activeElement;
        const label = (element as HTMLInputElement | null)?.labels?.[0]?.textContent;
        return `${element?.localName} ${element?.getAttribute("role") ?? ""} ${label ?? element?.getAttribute("aria-label") ?? element?.textContent?.slice(0, 60)}`;
      });
    const tabTo = async (words: RegExp): Promise<void> => {
      for (let step = 0; step < 40; step += 1) {
        await page.keyboard.press("Tab");
        if (words.test(await focused())) return;
      }
      throw new Error(`Tab never led to ${words}; it is at ${await focused()}.`);
    };
    await page.keyboard.press("/");
    await page.keyboard.type("gives back");
    await soon(() => page.getByRole("listbox", { name: "Operations" }).getByRole("option").count()).toBe(1);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "post.echo" }).waitFor();
    await tabTo(/^(input|textarea) .*Text/);
    await page.keyboard.type("by hand");
    const ring = await page.evaluate(() => {
      const style = getComputedStyle(document.activeElement ?? document.body);
      return style.outlineStyle !== "none" || style.boxShadow !== "none";
    });
    expect(ring).toBe(true);
    await page.keyboard.press("Control+Enter");
    await page.getByRole("region", { name: "Result", exact: true }).waitFor();
    await tabTo(/^button tab Data/);
    await page.keyboard.press("ArrowRight");
    await soon(() => page.getByRole("tab", { name: "Envelope" }).getAttribute("aria-selected")).toBe("true");
    await page.keyboard.press("ArrowLeft");
    await tabTo(/treeitem/);
    await page.keyboard.press("ArrowDown");
    await soon(focused).toContain("by hand");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await soon(() => page.getByRole("tree", { name: "Data" }).getByRole("treeitem").count()).toBe(1);
    await inspector.close();
  });
});
