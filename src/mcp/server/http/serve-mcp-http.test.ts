import { describe, expect, it } from "vitest";
import { FetchRequest } from "../../../http/fetch-exchange.ts";
import { createHostGuard } from "../../../http/host-guard.ts";
import { MCP_CORS } from "./serve-mcp-http.ts";

describe("MCP_CORS", () => {
  it("Mcp: lets pages of allowed origins send the headers of a tool's parameters, and nothing unknown", () => {
    const guard = createHostGuard({ origins: ["https://app.example"] }, MCP_CORS);
    const headers = {
      origin: "https://app.example",
      "access-control-request-headers": "mcp-param-region, x-evil",
    };
    const preflight = guard.preflight(
      new FetchRequest(new Request("http://localhost/", { method: "OPTIONS", headers })),
    );
    expect(preflight?.headers["access-control-allow-methods"]).toBe("GET, POST, DELETE");
    const allowed = preflight?.headers["access-control-allow-headers"] ?? "";
    expect(allowed).toContain("mcp-session-id");
    expect(allowed).toContain("mcp-param-region");
    expect(allowed).not.toContain("x-evil");
    expect(preflight?.headers["access-control-expose-headers"]).toContain("mcp-session-id");
  });

  it("Mcp: takes names of parameters of up to 128 characters", () => {
    const isHeader = (name: string) => MCP_CORS.isRequestHeader?.(name);
    expect(isHeader(`mcp-param-${"x".repeat(128)}`)).toBe(true);
    expect(isHeader(`mcp-param-${"x".repeat(129)}`)).toBe(false);
  });
});
