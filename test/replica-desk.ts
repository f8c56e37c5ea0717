import type { GatewayConfig, LoadedConfig } from "../src/gateway/index.ts";
import { defineOperation } from "../src/index.ts";
import { loadedConfig } from "./served-gateway.ts";

/** The tokens of two callers of every replica. */
export const TOKENS = { ann: "the-token-of-ann-1", ben: "the-token-of-ben-1" } as const;

const FORM = {
  message: "Which colour?",
  requestedSchema: { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] },
} as const;

/** Operations that tell which replica they run at, ask, and wait. */
export function deskOperations(name: string) {
  const counts = { asked: 0 };
  let release: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const shared = { namespace: "desk", version: "1.0.0", type: "query", description: "" } as const;
  const operations = [
    defineOperation({
      ...shared,
      name: "who",
      handler: (_, { identity }) => ({ who: identity?.subject, at: name }),
    }),
    defineOperation({
      ...shared,
      name: "ask",
      handler: async (_, { elicit }) => {
        const { content } = await elicit(FORM, { key: "colour" });
        counts.asked += 1;
        return { colour: content?.["colour"], at: name };
      },
    }),
    defineOperation({
      ...shared,
      name: "wait",
      handler: async (_, { progress }) => {
        progress({ progress: 1, total: 2 });
        await released;
        progress({ progress: 2, total: 2 });
        return { waited: name };
      },
    }),
    defineOperation({
      ...shared,
      name: "count",
      type: "subscription",
      handler: async function* () {
        yield { n: 1, at: name };
        yield { n: 2, at: name };
        await released;
        yield { n: 3, at: name };
      },
    }),
  ];
  return { operations, counts, release: () => release() };
}

/** The config of a replica, with the tokens of its callers. */
export function replicaConfig({ serve, ...others }: GatewayConfig): LoadedConfig {
  const tokens = Object.fromEntries(Object.entries(TOKENS).map(([who, token]) => [who, { token }]));
  return loadedConfig({ ...others, serve: { auth: { tokens }, ...serve } });
}
