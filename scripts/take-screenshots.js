// @ts-check
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/**
 * Takes the pictures of the inspector for the docs: every view of the embedded default, in both themes, with real calls behind it.
 * Needs a build, and chromium. Usage: node scripts/take-screenshots.js [folder]
 */
const CLI = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
const FOLDER = process.argv[2] ?? fileURLToPath(new URL("../docs/images", import.meta.url));
const MOST_BYTES = 250_000;
const VIEWPORT = { width: 1_280, height: 800 };

/** @typedef {import("playwright-core").Page} Page */

/** @param {Page} page @param {string} place */
async function go(page, place) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${place}`);
}

/** Takes the paths of this machine out of what is shown. @param {Page} page */
async function withoutPaths(page) {
  await page.evaluate(
    ([root, node]) => {
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const { currentNode } = texts;
        const text = currentNode.nodeValue ?? "";
        if (text.includes(root) || text.includes(node))
          currentNode.nodeValue = text.replaceAll(node, "node").replaceAll(root, "waybill/");
      }
    },
    /** @type {const} */ ([fileURLToPath(new URL("..", import.meta.url)), process.execPath]),
  );
}

/** @param {Page} page @param {string} operation @param {object} input */
async function run(page, operation, input) {
  await go(page, `operations/${operation}`);
  await page.getByRole("heading", { name: operation }).waitFor();
  await page.getByRole("radio", { name: "JSON" }).check();
  await page.getByRole("textbox", { name: "Input as JSON" }).fill(JSON.stringify(input));
  await page.getByRole("radio", { name: "Form" }).check();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("region", { name: "Result", exact: true }).waitFor();
}

/** How each picture is come by. @type {Readonly<Record<string, (page: Page) => Promise<void>>>} */
const VIEWS = {
  home: async (page) => {
    await go(page, "home");
    await page.getByRole("region", { name: "Tool list" }).waitFor();
    await page.getByRole("region", { name: "Last calls" }).getByRole("listitem").first().waitFor();
  },
  operations: async (page) => {
    await run(page, "parcel.track", { id: "P-1001" });
    await page
      .getByRole("region", { name: "Operation", exact: true })
      .evaluate((side) => side.scrollTo(0, 0));
  },
  table: (page) => run(page, "parcel.list", {}),
  formats: async (page) => {
    await run(page, "depot.label", { id: "P-1001", to: "Lisbon" });
    await page.getByRole("tab", { name: "Formats" }).click();
    await page
      .getByText(/__ENVELOPE_V1__/)
      .first()
      .waitFor();
  },
  calls: async (page) => {
    await go(page, "calls");
    const list = page.getByRole("listbox", { name: "Calls, newest first" });
    await list
      .getByRole("option", { name: /parcel\.plan/ })
      .first()
      .click();
    await page.getByRole("region", { name: "Result", exact: true }).waitFor();
  },
  sources: async (page) => {
    await go(page, "sources");
    await page.getByRole("article").first().waitFor();
  },
  decode: async (page) => {
    await go(page, "decode");
    await page.getByRole("group", { name: "Examples" }).getByRole("button").nth(1).click();
    await page.getByRole("article").waitFor();
  },
};

/** @param {string} state the folder of its state */
async function startGateway(state) {
  const env = { ...process.env, WAYBILL_STATE_DIR: state };
  const child = spawn(
    process.execPath,
    [CLI, "serve", "--port", "0", "--lame-duck", "0", "--log-format", "text"],
    {
      cwd: state,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let said = "";
  child.stderr.setEncoding("utf8");
  const url = await new Promise((resolve, reject) => {
    child.stderr.on("data", (chunk) => {
      said += chunk;
      const found = /MCP +(http:\S+)\/mcp/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", () => reject(new Error(`The gateway ended: ${said}`)));
  });
  return { child, url: String(url) };
}

/** @param {string} url */
async function makeCalls(url) {
  const call = (/** @type {string} */ operation, /** @type {object} */ input) =>
    fetch(`${url}/call`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ operation, input }),
    });
  for (let round = 0; round < 40; round += 1) {
    await call("parcel.track", { id: `P-100${1 + (round % 3)}` });
    await call("tariff.quote", { kg: 1 + (round % 9), zone: round % 2 === 0 ? "europe" : "world" });
    if (round % 4 === 0) await call("depot.stock", {});
    if (round % 6 === 0) await call("parcel.track", { id: "P-9999" });
    if (round % 10 === 0) await call("tariff.quote", { kg: -1 });
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  await call("parcel.plan", { zone: "europe", kg: 2.5 });
}

const state = mkdtempSync(join(tmpdir(), "waybill-screenshots-"));
mkdirSync(FOLDER, { recursive: true });
const gateway = await startGateway(state);
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  await makeCalls(gateway.url);
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const page = await browser.newPage({ viewport: VIEWPORT, colorScheme, reducedMotion: "reduce" });
    await page.goto(`${gateway.url}/inspect`);
    for (const [view, reach] of Object.entries(VIEWS)) {
      await reach(page);
      await page.mouse.move(0, 0);
      // What is said for a moment is gone, and nothing moves any more.
      await page.waitForTimeout(600);
      await withoutPaths(page);
      const path = join(FOLDER, `inspector-${view}-${colorScheme}.png`);
      await page.screenshot({ path });
      const { size } = statSync(path);
      console.log(`${path}: ${Math.round(size / 1_000)} KB`);
      if (size > MOST_BYTES) throw new Error(`${path} is larger than ${MOST_BYTES} bytes.`);
    }
    await page.close();
  }
} finally {
  await browser.close();
  gateway.child.kill();
  rmSync(state, { recursive: true, force: true });
}
