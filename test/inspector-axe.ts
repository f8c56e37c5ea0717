import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { ROOT } from "./run-node.ts";

const AXE = readFileSync(join(ROOT, "node_modules/axe-core/axe.min.js"), "utf8");

interface AxeRun {
  readonly axe: {
    run(options: object): Promise<{
      readonly violations: readonly {
        readonly id: string;
        readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
      }[];
    }>;
  };
}

/** What axe-core finds wrong with a page as it is now; the page's policy must be bypassed. */
export async function barriersOn(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  return await page.evaluate(async () => {
    const { violations } = await (window as unknown as AxeRun).axe.run({ resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(
        ({ html, failureSummary = "" }) => `${id}: ${html.slice(0, 200)} ${failureSummary.slice(0, 300)}`,
      ),
    );
  });
}
