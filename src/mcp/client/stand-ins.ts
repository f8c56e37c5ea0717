import { isPlainObject } from "../../core/json/json-value.ts";

/** The least that the SDK takes for a result of each method. */
const BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "tools/call": { content: [] },
  "tools/list": { tools: [] },
  "prompts/get": { messages: [] },
  "prompts/list": { prompts: [] },
  "resources/list": { resources: [] },
  "resources/templates/list": { resourceTemplates: [] },
  "resources/read": { contents: [] },
  "completion/complete": { completion: { values: [] } },
};

/** What the 2026-07-28 revision wants in every result; older ones do not mind. */
const COMPLETE = { resultType: "complete", ttlMs: 0, cacheScope: "private" } as const;

/** Makes the result that the SDK is handed in place of the server's, so that no schema of its own refuses or changes anything. */
export function standInFor(method: string): Record<string, unknown> {
  return { ...COMPLETE, ...(Object.hasOwn(BODIES, method) ? BODIES[method] : {}) };
}

/** The same for `initialize` and `server/discover`, of which the SDK needs the revisions; anything else is left to its judgement. */
export function standInForHandshake(method: string, result: unknown): unknown {
  if (!isPlainObject(result)) return result;
  if (method === "initialize") {
    if (typeof result["protocolVersion"] !== "string") return result;
    return {
      protocolVersion: result["protocolVersion"],
      capabilities: {},
      serverInfo: { name: "server", version: "0" },
    };
  }
  const versions = result["supportedVersions"];
  if (!Array.isArray(versions) || !versions.every((version) => typeof version === "string")) return result;
  return { ...COMPLETE, supportedVersions: versions, capabilities: {} };
}
