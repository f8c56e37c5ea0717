import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { describe, it } from "vitest";
import { HARDENED } from "./run-node.ts";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The browser on PATH, if there is one. */
const CHROMIUM = (process.env["PATH"] ?? "")
  .split(delimiter)
  .map((folder) => join(folder, "chromium"))
  .find((path) => existsSync(path));

/** Describes tests that need a browser; without one they are skipped aloud, and fail where `CI` is "true". */
export function browserSuite(title: string, body: () => void): void {
  if (HARDENED) {
    describe.skip(`${title} (skipped: what drives the browser uses __proto__)`, body);
  } else if (CHROMIUM !== undefined) {
    describe(title, body);
  } else if (process.env["CI"] === "true") {
    it(`${title}: chromium is installed`, () => {
      throw new Error("No chromium was found on the PATH; install the package chromium.");
    });
  } else {
    describe.skip(`${title} (skipped: no chromium on the PATH)`, body);
  }
}

/** Starts the browser, without a network of its own. */
export async function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error("There is no browser.");
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
