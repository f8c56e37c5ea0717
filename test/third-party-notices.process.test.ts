import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BUNDLED, thirdPartyNotices } from "../scripts/third-party-notices.js";
import { ROOT } from "./run-node.ts";

describe("code of others in the package", () => {
  it("has its licences in THIRD-PARTY-NOTICES, as `node scripts/third-party-notices.js` writes them", () => {
    expect(readFileSync(join(ROOT, "THIRD-PARTY-NOTICES"), "utf8")).toBe(thirdPartyNotices());
  });

  it("comes from the packages that are listed as bundled", () => {
    const built = readdirSync(join(ROOT, "dist"), { recursive: true, encoding: "utf8" });
    const copied = built
      .filter((file) => file.endsWith(".js"))
      .flatMap((file) => [
        ...readFileSync(join(ROOT, "dist", file), "utf8").matchAll(
          /#region node_modules\/((?:@[^/]+\/)?[^/]+)\//g,
        ),
      ])
      .map(([, name]) => name);
    expect([...new Set(copied)].sort()).toEqual(BUNDLED);
  });
});
