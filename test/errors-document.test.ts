import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ERROR_CODES } from "../src/index.ts";
import { ROOT } from "./run-node.ts";

const yes = (is: boolean): string => (is ? "yes" : "");

it("X-5 docs/errors.md has a row for every code, as the table says", () => {
  const rows = Object.entries(ERROR_CODES).map(([code, traits]) => {
    const { message, httpStatus, retryable, correctable, category, tieredCode, mcpAnswer, callEvent } =
      traits;
    const answer = mcpAnswer === "error-result" ? "result" : "-32602";
    const cells = [
      `\`${code}\``,
      message,
      httpStatus,
      yes(retryable),
      yes(correctable),
      category,
      tieredCode,
      answer,
      callEvent,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const page = readFileSync(join(ROOT, "docs/errors.md"), "utf8");
  const table = page.split("\n").filter((line) => line.split(" | ").length === 9 && line.startsWith("| `"));
  expect(table).toEqual(rows);
});
