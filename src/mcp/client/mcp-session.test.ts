import { describe, expect, it } from "vitest";
import { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { RequestStop } from "./mcp-session.ts";

const asked = { method: "tools/call", server: "MCP server x", secrets: new SourceSecrets() };

describe("RequestStop", () => {
  it("Mcp: names whole milliseconds", () => {
    const stop = new RequestStop(asked, 49.300000001, undefined);
    stop.expire();
    expect(() => stop.throwIfStopped()).toThrow("MCP server x did not answer tools/call within 50 ms.");
  });

  it("Mcp: waits for what ends, well or not, and no longer than the request may take", async () => {
    const never = new Promise(() => {});
    await new RequestStop(asked, 1_000, undefined).waitFor(Promise.reject(new Error("no")));
    const late = new RequestStop(asked, 20, undefined).waitFor(never);
    await expect(late).rejects.toMatchObject({ code: "TIMEOUT" });
    const unwanted = new RequestStop(asked, 1_000, AbortSignal.abort()).waitFor(never);
    await expect(unwanted).rejects.toMatchObject({ code: "ABORTED" });
  });
});
