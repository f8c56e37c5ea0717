import { describe, expect, it } from "vitest";
import {
  defineOperation,
  httpEnvelope,
  type MCPEnvelopeMeta,
  mcpEnvelope,
  OperationRegistry,
  type OperationSpec,
} from "../src/index.ts";
import { SURFACES, type Surface } from "./surfaces.ts";

const operation = (name: string, handler: () => unknown) =>
  defineOperation({
    namespace: "odd",
    name,
    version: "1.0.0",
    type: "query",
    description: "Gives an envelope that JSON cannot hold.",
    handler,
  } as OperationSpec);

const circle: Record<string, unknown> = {};
circle["circle"] = circle;
const given = (meta: Partial<MCPEnvelopeMeta>) => () =>
  mcpEnvelope({ n: 1 }, { isError: false, content: [], ...meta });

/** What adapters and hand-made envelopes may carry beside their data. */
const registry = new OperationRegistry(
  [
    operation("meta", given({ _meta: { n: 1n } })),
    operation("circle", given({ _meta: circle })),
    operation("block", given({ content: [{ type: "text", text: "x", _meta: { n: 1n } }] })),
    operation("page", () =>
      httpEnvelope([1], {
        statusCode: 200,
        headers: {},
        waybill: { page: { next: "p2", input: { since: 1n } } },
      }),
    ),
  ],
  { onWarning: () => {} },
);

describe.each(["MCP 2025", "MCP 2026"])("what JSON cannot hold, over %s", (name) => {
  it("X-5 is an answer at once, and never a client that waits", async () => {
    const surface = (await SURFACES[name]?.(registry)) as Surface;
    const call = (id: string) => surface.executor.execute(id, {}, { timeoutMs: 20_000 });
    for (const id of ["odd.meta", "odd.circle", "odd.block"]) {
      const thrown = (await call(id).then(
        () => undefined,
        (error: unknown) => error,
      )) as { readonly code?: string } | undefined;
      expect(thrown, id).toMatchObject({ name: "CallError" });
      expect(thrown?.code, id).not.toBe("TIMEOUT");
    }
    const { data, meta } = await call("odd.page");
    expect(data).toEqual([1]);
    expect(meta.waybill?.page).toEqual({ next: "p2" });
    await surface.close();
  });
});
