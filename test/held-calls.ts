import type { Approver } from "../src/gateway/approvals/approvals.ts";
import { createGateway, type GatewayConfig, serveGateway } from "../src/gateway/index.ts";
import { type CallRecord, createObserver } from "../src/gateway/serve/observe/observer.ts";
import { defineOperation, Type } from "../src/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { loadedConfig } from "./served-gateway.ts";

/** The token of a caller who may not approve. */
export const AGENT = "agent-token-0123456789";
/** The token of one who may. */
export const ADA = "ada-token-0123456789ab";
/** Somebody at a terminal who may approve. */
const APPROVER: Approver = {
  identity: { subject: "ada", scopes: ["waybill:approve"] },
  via: "command",
};

/** A gateway that pays, and reads, once somebody has approved it. */
export async function heldCalls(config: GatewayConfig = {}) {
  const ran: unknown[] = [];
  const pay = defineOperation({
    namespace: "bank",
    name: "pay",
    description: "Pays somebody.",
    inputSchema: Type.Object({ to: Type.String(), amount: Type.Number() }),
    annotations: { destructive: true },
    handler: (input) => {
      ran.push(input);
      return { paid: input };
    },
  });
  const balance = defineOperation({ namespace: "bank", name: "balance", type: "query", handler: () => 7 });
  const outer = defineOperation({
    namespace: "bank",
    name: "payTwice",
    authority: { scopes: [] },
    annotations: { destructive: false },
    handler: (_, context) => context.execute("bank.pay", { to: "bob", amount: 2 }),
  });
  const tokens = {
    agent: { token: AGENT },
    ada: { token: ADA, scopes: ["waybill:approve", "waybill:inspect"] },
  };
  const loaded = {
    ...loadedConfig({
      policies: { "bank.*": { approve: { calls: "destructive", holdMs: 60_000 } } },
      serve: { auth: { tokens } },
      ...config,
    }),
    localOperations: [pay, balance, outer],
  };
  const observer = createObserver();
  const records: CallRecord[] = [];
  observer.listen({ end: (record) => void records.push(record) });
  const gateway = await createGateway(loaded, { observers: [observer] });
  atEnd(() => gateway.close());
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  atEnd(() => server.close({ timeoutMs: 0 }));
  const waiting = async () => {
    for (;;) {
      const [first] = await gateway.approvals.list(APPROVER);
      if (first !== undefined) return first;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  const decide = async (isApproved = true) =>
    gateway.approvals.decide((await waiting()).id, { isApproved }, APPROVER);
  return { gateway, server, ran, records, waiting, decide };
}
