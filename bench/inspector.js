// @ts-check
import { spawn } from "node:child_process";
import { chromium } from "playwright-core";
import { runBench } from "./bench.js";
import { CLI, writeConfig } from "./gateway/config.js";
import { runOpenLoop } from "./inspector/open-loop.js";
import { readWatch, watchPage } from "./inspector/watch-page.js";
import { verdict } from "./report.js";
import "./waybill.js";

const PER_SECOND = 1_000;
const CONNECTIONS = 16;

/** @param {boolean} inspect */
async function startGateway(inspect) {
  const { folder, remove } = writeConfig({
    serve: { port: 0, inspect },
    log: { level: "error", format: "text" },
  });
  const child = spawn(process.execPath, [CLI, "serve", "--lame-duck", "0"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = () => void child.kill();
  process.once("exit", kill);
  let said = "";
  child.stderr.setEncoding("utf8");
  const port = await new Promise((resolve, reject) => {
    child.stderr.on("data", (chunk) => {
      said += chunk;
      const found = /MCP +http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    child.once("exit", () => reject(new Error(`The gateway ended: ${said}`)));
  });
  const close = () => {
    process.off("exit", kill);
    child.kill();
    remove();
  };
  return { port: Number(port), close };
}

/** @param {number} port */
function requestTo(port) {
  const lines = [
    "GET /api/bench/add?a=1&b=2 HTTP/1.1",
    `host: 127.0.0.1:${port}`,
    "accept: application/json",
  ];
  return [...lines, "", ""].join("\r\n");
}

/** @param {number} port @param {number} seconds */
async function load(port, seconds) {
  const options = { perSecond: PER_SECOND, connections: CONNECTIONS };
  // A gateway that has answered nothing yet is slower than it ever is again.
  await runOpenLoop(port, requestTo(port), { ...options, seconds: 2 });
  return await runOpenLoop(port, requestTo(port), { ...options, seconds });
}

/** @param {boolean} inspect @param {number} seconds */
async function withoutPage(inspect, seconds) {
  const gateway = await startGateway(inspect);
  try {
    return await load(gateway.port, seconds);
  } finally {
    gateway.close();
  }
}

/** @param {number} seconds */
async function withPage(seconds) {
  const gateway = await startGateway(true);
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  const browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args,
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
    await page.goto(`http://127.0.0.1:${gateway.port}/inspect/#/calls`);
    await page.getByText("live", { exact: false }).first().waitFor();
    await page.evaluate(watchPage);
    const loading = load(gateway.port, seconds);
    /** @type {number[]} */
    const clicks = [];
    let isLoading = true;
    void loading.finally(() => {
      isLoading = false;
    });
    while (isLoading) {
      const started = performance.now();
      await page.getByRole("tab", { name: clicks.length % 2 === 0 ? "By operation" : "Calls" }).click();
      clicks.push(performance.now() - started);
      await page.waitForTimeout(500);
    }
    const seen = await page.evaluate(readWatch);
    await page.getByRole("tab", { name: "Calls" }).click();
    const rows = await page.getByText(/^[\d,]+ calls$/).textContent();
    const dropped = await page.getByText(/not shown because/).allTextContents();
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    const slowestClick = Math.max(...clicks);
    return {
      ...(await loading),
      seen,
      rows,
      dropped: dropped.join() || "none left out",
      nodes,
      slowestClick,
    };
  } finally {
    await browser.close();
    gateway.close();
  }
}

/** @param {string} side @param {import("./inspector/open-loop.js").LoopResult} result */
function print(side, { perSecond, p50, p95, p99 }) {
  const times = [p50, p95, p99].map((time) => `${time.toFixed(1)} ms`.padStart(10)).join("");
  console.log(`  ${side.padEnd(26)}${perSecond.toFixed(0).padStart(8)}${times}`);
}

/** @type {import("./bench.js").Case} */
async function pageOpen(name, { quick }) {
  const seconds = quick ? 3 : 10;
  const off = await withoutPage(false, seconds);
  const on = await withoutPage(true, seconds);
  const open = await withPage(seconds);
  console.log(`\n${name}: ${PER_SECOND} calls a second over ${CONNECTIONS} connections, for ${seconds} s`);
  console.log(
    `  ${"".padEnd(26)}${"calls/s".padStart(8)}${"p50".padStart(10)}${"p95".padStart(10)}${"p99".padStart(10)}`,
  );
  print("without the inspector", off);
  print("with it, no page open", on);
  print("with a page on Calls", open);
  const { longestTask, p95Frame, frames } = open.seen;
  console.log(
    `  in the page: longest task ${longestTask.toFixed(0)} ms, p95 between frames ${p95Frame.toFixed(1)} ms (${frames} frames), slowest click ${open.slowestClick.toFixed(0)} ms; ${open.rows} held, ${open.dropped}, ${open.nodes} elements`,
  );
  const share = open.perSecond / off.perSecond;
  return [
    verdict(
      name,
      "calls with a page open at least 0.95 of those without the inspector",
      `${share.toFixed(3)}×`,
      share >= 0.95,
    ),
    verdict(
      name,
      "longest task of the page within 200 ms",
      `${longestTask.toFixed(0)} ms`,
      longestTask <= 200,
    ),
    verdict(
      name,
      "slowest click within 500 ms",
      `${open.slowestClick.toFixed(0)} ms`,
      open.slowestClick <= 500,
    ),
  ];
}

await runBench("inspector", { page: pageOpen });
