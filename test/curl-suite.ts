import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, it } from "vitest";

const HAS_CURL = (process.env["PATH"] ?? "").split(delimiter).some((folder) => {
  try {
    accessSync(join(folder, "curl"), constants.X_OK);
    return true;
  } catch {
    return false;
  }
});

/** Describes tests that need curl; without it they are skipped aloud, and fail where `CI` is "true". */
export function curlSuite(title: string, body: () => void): void {
  if (HAS_CURL) {
    describe(title, body);
  } else if (process.env["CI"] === "true") {
    it(`${title}: curl is installed`, () => {
      throw new Error("No curl was found on the PATH; install the package curl.");
    });
  } else {
    describe.skip(`${title} (skipped: no curl on the PATH)`, body);
  }
}
