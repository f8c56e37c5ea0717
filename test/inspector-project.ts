import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { GatewayConfig } from "../src/gateway/index.ts";
import { OPERATIONS_MODULE, RED_POINT, SILENCE } from "./inspector-operations.ts";
import {
  SCRIPTED_SERVER,
  type ServedFolder,
  scriptedTool,
  type UsedFolder,
  useFolder,
} from "./installed-folder.ts";

/** A folder with a config, operations and an MCP server, to be served and looked at. */
export interface InspectorProject extends UsedFolder {
  readonly config: GatewayConfig;
  /** Says what the MCP server offers from now on. */
  setTools(tools: readonly object[]): void;
  /** Makes the MCP server end at its next start, or lets it start again. */
  setBroken(isBroken: boolean): void;
  /** Serves it, at an address of ours or at a free one. */
  open(port?: number): Promise<ServedFolder>;
}

/** The server ends by itself for as long as a file lies beside it. */
const BREAKABLE_SERVER = `
import { existsSync } from "node:fs";
if (existsSync(new URL("./broken", import.meta.url))) {
  console.error("the depot is on fire");
  process.exit(3);
}
${SCRIPTED_SERVER}`;

/** Tools whose results hold more than text. */
export const MEDIA_TOOLS = [
  scriptedTool(
    "picture",
    "Shows a point and plays silence.",
    {},
    {
      content: [
        { type: "text", text: "A red point." },
        { type: "image", data: RED_POINT, mimeType: "image/png" },
        { type: "audio", data: SILENCE, mimeType: "audio/wav" },
        { type: "resource_link", uri: "https://example.com/point", name: "the point" },
      ],
    },
  ),
  scriptedTool(
    "quote",
    "Answers with JSON in text.",
    {},
    {
      content: [{ type: "text", text: '{"price":7,"zone":"north"}' }],
    },
  ),
] as const;

/** Writes the project; `more` is laid over its config. */
export function openInspectorProject(more: Partial<GatewayConfig> = {}): InspectorProject {
  const folder = useFolder();
  folder.write("ops/post.mjs", OPERATIONS_MODULE);
  folder.write("depot/server.mjs", BREAKABLE_SERVER);
  folder.write("depot/tools.json", [...MEDIA_TOOLS]);
  const config: GatewayConfig = {
    name: "post office",
    operations: "ops/*.mjs",
    mcpServers: {
      depot: { command: process.execPath, args: ["depot/server.mjs", "depot/tools.json"], recoverJson: true },
    },
    ...more,
    serve: { inspect: true, ...more.serve },
  };
  folder.write("waybill.config.json", config);
  const broken = join(folder.path, "depot/broken");
  return {
    ...folder,
    config,
    setTools: (tools) => void folder.write("depot/tools.json", [...tools]),
    setBroken: (isBroken) => (isBroken ? writeFileSync(broken, "") : rmSync(broken, { force: true })),
    open: (port = 0) => folder.serve(["--port", String(port)]),
  };
}

/** Calls an operation over HTTP, as any client would. */
export async function callOverHttp(url: string, operation: string, input: object = {}): Promise<unknown> {
  const response = await fetch(`${url}/call`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ operation, input }),
  });
  return await response.json();
}
