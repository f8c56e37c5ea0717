import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect } from "vitest";

/** What a page did that it should not have. */
export interface Misdeeds {
  /** Errors on the console, violations of its policy and exceptions that nobody caught. */
  readonly faults: string[];
  /** Requests to anywhere but its own gateway. */
  readonly elsewhere: string[];
  /** Dialogs, windows and moves to other documents. */
  readonly moves: string[];
}

/** A page of the inspector, and what it did. */
export interface InspectorPage extends Misdeeds {
  readonly page: Page;
  /** Goes to one of the views. */
  view(name: "Home" | "Operations" | "Resources" | "Calls" | "Sources" | "Decode"): Promise<void>;
  /** Chooses an operation in its view, by its address. */
  choose(operation: string): Promise<void>;
  /** Ends the page and what belongs to it. */
  close(): Promise<void>;
}

/** How a page is opened. */
export interface InspectorPageOptions {
  /** @default "/inspect/#/operations" */
  readonly path?: string;
  readonly context?: BrowserContextOptions;
  /** Runs in the page before all else. @default nothing does */
  readonly before?: () => void;
}

/** Opens the inspector of a gateway in a context of its own, and writes down what the page does. */
export async function openInspector(
  browser: Browser,
  url: string,
  { path = "/inspect/#/operations", context: settings = {}, before }: InspectorPageOptions = {},
): Promise<InspectorPage> {
  const context = await browser.newContext({
    viewport: { width: 1_280, height: 800 },
    permissions: ["clipboard-read", "clipboard-write"],
    acceptDownloads: true,
    ...settings,
  });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const misdeeds = watch(page, new URL(url).origin);
  if (before !== undefined) await page.addInitScript(before);
  await page.goto(`${url}${path}`);
  return {
    page,
    ...misdeeds,
    async view(name) {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name, exact: true }).click();
    },
    async choose(operation) {
      await page.evaluate(
        (hash) => {
          location.hash = hash;
        },
        `#/operations/${encodeURIComponent(operation)}`,
      );
      await page.getByRole("button", { name: "Run", exact: true }).waitFor();
    },
    close: () => context.close(),
  };
}

function watch(page: Page, origin: string): Misdeeds {
  const misdeeds: Misdeeds = { faults: [], elsewhere: [], moves: [] };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") misdeeds.faults.push(message.text());
  });
  page.on("pageerror", (error) => misdeeds.faults.push(error.message));
  page.on("request", (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (asked !== origin && protocol !== "data:" && protocol !== "blob:")
      misdeeds.elsewhere.push(request.url());
  });
  page.on("dialog", (dialog) => {
    misdeeds.moves.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => misdeeds.moves.push(`popup: ${popup.url()}`));
  page.on("framenavigated", (frame) => {
    const { origin: there, pathname } = new URL(frame.url());
    if (frame !== page.mainFrame() || there !== origin || !/^\/inspect\/?$/.test(pathname)) {
      misdeeds.moves.push(`navigated: ${frame.url()}`);
    }
  });
  return misdeeds;
}

/** What the clipboard of a page holds. */
function clipboardOf(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText());
}

/** Presses a button that copies, and gives what it copied. */
export async function copied(page: Page, button: Locator): Promise<string> {
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await button.click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== "");
  return clipboardOf(page);
}

/** Waits for two frames: what was changed before has been drawn by then. */
export function drawn(page: Page): Promise<void> {
  return page.evaluate(
    () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  );
}

/** Expects something to come to be, as soon as a busy machine gets there. */
export function soon<T>(look: () => T | Promise<T>) {
  return expect.poll(look, { timeout: 60_000 });
}
