import { afterEach, describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { legacyClient } from "../../../test/mcp-server-peers.ts";
import { handGateway, handSource } from "../../../test/served-gateway.ts";
import type { Identity } from "../../core/access/identity.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { LocalProvider } from "../../mcp/server/resources/provider-set.ts";
import { toMcpServer } from "../../mcp/server/to-mcp-server.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { createPolicies } from "../policy/policies.ts";
import type { SourcePolicy } from "../policy/policy.ts";
import { liveProviders } from "./gateway-mcp.ts";
import type { ReadRecord } from "./observe/observer.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

class Elsewhere extends LocalProvider {
  override readonly namespace: string;

  constructor(namespace: string, read: () => string | Promise<string> = () => `of ${namespace}`) {
    super({
      resources: [{ uri: `${namespace}://note`, name: "note", read }],
      resourceTemplates: [
        { uriTemplate: `${namespace}://notes/{id}`, name: "any", complete: { id: () => ["7"] }, read },
      ],
      prompts: [{ name: "greet", get: () => `from ${namespace}` }],
    });
    this.namespace = namespace;
  }
}

const HOLDER: Identity = { subject: "ada", scopes: ["vault:read", "other"] };
const STRANGER: Identity = { subject: "eve", scopes: ["other"] };

/** A gateway with a source under a policy and one without, and clients of it. */
function serve(
  policy: SourcePolicy,
  more: Pick<GatewayConfig, "policies"> = {},
  vault = new Elsewhere("vault"),
) {
  const rules = (ofVault: SourcePolicy) => ({
    sources: new Map([["vault", ofVault]]),
    sourceOf: () => undefined,
    ...more,
  });
  const policies = createPolicies({ rules: rules(policy) });
  const gateway = { ...handGateway([]), policies };
  const up = { status: "up", since: 0 } as const;
  const sources = [handSource("vault", up, vault), handSource("wiki", up, new Elsewhere("wiki"))];
  const listeners = new Set<() => void>();
  const records: ReadRecord[] = [];
  const live = liveProviders(
    {
      policies: gateway.policies,
      sources,
      onSources: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
    (record) => records.push(record),
  );
  const server = toMcpServer(new OperationRegistry(), { providers: live });
  open.push(server, policies);
  const as = async (identity?: Identity) => {
    const client = await legacyClient(server, identity && { identity });
    open.push(client);
    return client;
  };
  const update = (next: SourcePolicy) => {
    policies.update(rules(next));
    for (const listener of listeners) listener();
  };
  return { as, update, records, live };
}

const COMPLETION = {
  ref: { type: "ref/resource", uri: "vault://notes/{id}" },
  argument: { name: "id", value: "" },
} as const;

describe("what sources offer besides tools, under their policies", () => {
  it("RE-30 is not there for a caller who lacks a scope of the source", async () => {
    const { as } = serve({ scopes: ["vault:read"] });
    const holder = await as(HOLDER);
    const uris = async (client: typeof holder) =>
      (await client.listResources()).resources.map(({ uri }) => uri);
    expect(await uris(holder)).toEqual(["vault://note", "wiki://note"]);
    expect((await holder.readResource({ uri: "vault://note" })).contents).toMatchObject([
      { text: "of vault" },
    ]);
    for (const identity of [STRANGER, undefined]) {
      const client = await as(identity);
      expect(await uris(client)).toEqual(["wiki://note"]);
      expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["wiki_greet"]);
      for (const uri of ["vault://note", "waybill+vault:vault://note", "vault://notes/7"]) {
        expect(await rejection(client.readResource({ uri }))).toMatchObject({ code: -32602 });
        expect(await rejection(client.subscribeResource({ uri }))).toMatchObject({ code: -32602 });
      }
      expect(await rejection(client.getPrompt({ name: "vault_greet" }))).toMatchObject({ code: -32602 });
      expect(await rejection(client.complete(COMPLETION))).toMatchObject({ code: -32602 });
      expect(await uris(holder)).toEqual(["vault://note", "wiki://note"]);
      expect((await client.readResource({ uri: "wiki://note" })).contents).toHaveLength(1);
    }
    expect((await holder.getPrompt({ name: "vault_greet" })).messages).toHaveLength(1);
    expect((await holder.complete(COMPLETION)).completion.values).toEqual(["7"]);
  });

  it("RE-30 is gone for everybody where the source is not enabled, by its own policy or a pattern for all of it", async () => {
    const { as, update, live } = serve({ enabled: false });
    expect(live.current.map(({ namespace }) => namespace)).toEqual(["wiki"]);
    const client = await as(HOLDER);
    expect(await rejection(client.readResource({ uri: "waybill+vault:vault://note" }))).toBeDefined();
    update({});
    expect(live.current.map(({ namespace }) => namespace)).toEqual(["vault", "wiki"]);
    expect((await client.readResource({ uri: "vault://note" })).contents).toHaveLength(1);
    const byPattern = serve(
      {},
      { policies: { "vault.*": { enabled: false }, "wiki.a*": { enabled: false } } },
    );
    expect(byPattern.live.current.map(({ namespace }) => namespace)).toEqual(["wiki"]);
  });

  it("RE-30 keeps to the time and the concurrency of the source's policy", async () => {
    let running = 0;
    let most = 0;
    const slow = new Elsewhere("vault", async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 20));
      running -= 1;
      return "slow";
    });
    const { as, update } = serve({ concurrency: 1 }, {}, slow);
    const client = await as(HOLDER);
    await Promise.all([1, 2, 3].map(() => client.readResource({ uri: "vault://note" })));
    expect(most).toBe(1);
    update({ timeoutMs: 1 });
    expect(await rejection(client.readResource({ uri: "vault://note" }))).toMatchObject({
      message: expect.stringContaining("deadline"),
    });
  });

  it("RE-30 logs no less to the gateway because a caller wants less, and more where one wants that", async () => {
    const asked: string[] = [];
    class Logging extends Elsewhere {
      override readonly capabilities = { ...new Elsewhere("vault").capabilities, logging: true };
      override async setLogLevel(level: string): Promise<void> {
        asked.push(level);
      }
    }
    const { as } = serve({}, {}, new Logging("vault"));
    const client = await as(HOLDER);
    await client.setLoggingLevel("emergency");
    expect(asked).toEqual(["info"]);
    await client.setLoggingLevel("debug");
    expect(asked).toEqual(["info", "debug"]);
  });

  it("RE-30 tells of every read and every prompt once, without what they hold", async () => {
    const { as, records } = serve({ scopes: ["vault:read"] });
    const client = await as(HOLDER);
    await client.readResource({ uri: "vault://note" });
    await client.getPrompt({ name: "vault_greet" });
    await rejection(client.readResource({ uri: "waybill+vault:vault://nothing" }));
    const common = { source: "vault", subject: "ada", durationMs: expect.any(Number) };
    expect(records).toEqual([
      { event: "resource", name: "vault://note", outcome: "ok", ...common },
      { event: "prompt", name: "greet", outcome: "ok", ...common },
      { event: "resource", name: "vault://nothing", outcome: "call_error", code: "NOT_FOUND", ...common },
    ]);
  });
});
