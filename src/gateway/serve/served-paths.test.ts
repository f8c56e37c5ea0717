import { describe, expect, it } from "vitest";
import type { ServeConfig } from "../config/gateway-config.ts";
import { servedPaths } from "./serve-settings.ts";

const ALL = { mcp: "/mcp", api: "/api", document: "/openapi.json", docs: "/docs", metrics: "/metrics" };

describe("where a gateway serves what", () => {
  it.each<[ServeConfig | undefined, readonly (keyof typeof ALL)[]]>([
    [undefined, ["mcp", "api", "document", "docs", "metrics"]],
    [{ mcp: false }, ["api", "document", "docs", "metrics"]],
    [{ mcp: { dots: true }, http: false }, ["mcp", "metrics"]],
    [{ http: { docs: false } }, ["mcp", "api", "document", "metrics"]],
    [{ http: { title: "x" }, metrics: false }, ["mcp", "api", "document", "docs"]],
  ])("RE-30 is what its config says: %j", (serve, names) => {
    expect(servedPaths(serve)).toEqual(Object.fromEntries(names.map((name) => [name, ALL[name]])));
  });
});
