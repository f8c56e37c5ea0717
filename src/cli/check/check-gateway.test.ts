import { expect, it } from "vitest";
import { runCommandLine } from "../../../test/run-command-line.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { createGateway } from "../../gateway/gateway.ts";
import { serveGateway } from "../../gateway/serve/serve-gateway.ts";
import { defineOperation, Type, toolError } from "../../index.ts";
import type { CheckReport } from "./check-report.ts";

const track = defineOperation({
  namespace: "parcel",
  name: "track",
  version: "1.0.0",
  type: "query",
  description: "Says where parcels are.",
  inputSchema: Type.Object({ code: Type.Optional(Type.String()) }),
  outputSchema: Type.Object({ place: Type.String() }),
  handler: () => ({ place: "Basel" }),
});

const watch = defineOperation({
  namespace: "parcel",
  name: "watch",
  version: "1.0.0",
  type: "subscription",
  description: "Tells where parcels go, without end.",
  inputSchema: Type.Object({}),
  outputSchema: Type.Object({ n: Type.Integer() }),
  handler: async function* (_, { signal }) {
    for (let n = 0; !signal.aborted; n++) {
      yield { n };
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
});

const refuse = defineOperation({
  namespace: "parcel",
  name: "refuse",
  version: "1.0.0",
  type: "query",
  description: "Finds no parcel.",
  inputSchema: Type.Object({}),
  outputSchema: Type.Object({ place: Type.String() }),
  handler: () => toolError({ place: "" }, { code: "NO_PARCEL", message: "There is no parcel." }),
});

const refuseOddly = defineOperation({
  namespace: "parcel",
  name: "refuse-oddly",
  version: "1.0.0",
  type: "query",
  description: "Finds no parcel, and gives something else.",
  inputSchema: Type.Object({}),
  outputSchema: Type.Object({ place: Type.String() }),
  handler: () => toolError({ tried: 3 } as never, { code: "NO_PARCEL", message: "There is no parcel." }),
});

it("RE-30 a running gateway is checked as an MCP server and as an API, and keeps its word as both", async () => {
  const loaded: LoadedConfig = {
    config: { serve: { port: 0 } },
    baseDir: process.cwd(),
    files: new Map(),
    faults: {},
    warnings: [],
    secrets: new SecretMask(),
    localOperations: [track, watch, refuse, refuseOddly],
  };
  const gateway = await createGateway(loaded);
  await gateway.ready;
  const server = await serveGateway(gateway, loaded, {});
  try {
    const { code, stdout } = await runCommandLine(["check", server.url, "--json"]);
    const { reports } = JSON.parse(stdout) as { reports: CheckReport[] };
    const wrong = reports.flatMap(({ checks }) =>
      checks.filter(({ status }) => status === "fail" || status === "warn"),
    );
    expect([reports.map(({ kind }) => kind), wrong, code]).toEqual([["mcp", "openapi"], [], 0]);
    expect(
      reports[0]?.checks.find(({ id, subject }) => id === "mcp.call" && /watch/.test(subject)),
    ).toMatchObject({
      status: "pass",
      message: "It is a stream, and gave 3 values.",
    });
    expect(reports[1]?.checks.find(({ id }) => id === "openapi.response.schema")?.status).toBe("pass");
  } finally {
    await server.close();
    await gateway.close();
  }
});
