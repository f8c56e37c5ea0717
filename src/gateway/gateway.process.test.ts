import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { query, rejection, sleep, until } from "../../test/make-operation.ts";
import { defineOperation } from "../core/operation/operation.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../core/registry/executor.ts";
import { SecretMask } from "../core/secrets/secret-mask.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import type { LoadedConfig } from "./config/loaded-config.ts";
import { createGateway, type Gateway, type GatewayOptions } from "./gateway.ts";

const MEMORY = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);
const everything = { command: process.execPath, args: [MEMORY, "stdio"] };

const load = (
  config: GatewayConfig,
  localOperations: readonly AnyOperation[] = [],
  extra: Partial<LoadedConfig> = {},
): LoadedConfig => ({
  config,
  baseDir: import.meta.dirname,
  files: new Map(),
  faults: {},
  warnings: [],
  secrets: new SecretMask(),
  localOperations,
  ...extra,
});

let gateways: Gateway[] = [];
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  gateways = [];
});

async function open(loaded: LoadedConfig, options?: GatewayOptions): Promise<Gateway> {
  const gateway = await createGateway(loaded, options);
  gateways.push(gateway);
  await gateway.ready;
  return gateway;
}

const echo = query("local.echo", (input) => input);
const ids = ({ executor }: Gateway) => executor.list().map(({ id }) => id);
const states = ({ sources }: Gateway) =>
  Object.fromEntries(sources.map(({ name, state }) => [name, state.status]));

describe("a gateway", () => {
  it("RE-30 runs operations of every source through one executor", async () => {
    const gateway = await open(load({ mcpServers: { every: everything } }, [echo]));
    expect((await gateway.executor.execute("local.echo", { n: 1 })).data).toEqual({ n: 1 });
    const sum = await gateway.executor.execute("every.get-sum", { a: 1, b: 2 });
    expect(JSON.stringify(sum.data)).toContain("3");
    expect(sum.meta.source).toBe("mcp");
    expect(sum.meta.waybill?.durationMs).toBeGreaterThan(0);
    expect(states(gateway)).toEqual({ every: "up", local: "up" });
  });

  it("is not stopped by a source that is broken: calls to it fail with the cause, nested ones too", async () => {
    const nested = query("local.nested", (_, { execute }) => execute("gone.read", {}));
    const gateway = await open(
      load({ mcpServers: { gone: { command: "no-such-command-here" } } }, [echo, nested]),
    );
    expect(states(gateway)).toEqual({ gone: "down", local: "up" });
    expect((await gateway.executor.execute("local.echo", 1)).data).toBe(1);
    const expected = {
      code: "UNAVAILABLE",
      retryable: true,
      message: expect.stringMatching(/The source "gone" is down: .*no-such-command-here/),
    };
    expect(await rejection(gateway.executor.execute("gone.read", {}))).toMatchObject(expected);
    expect(await rejection(gateway.executor.execute("local.nested", {}))).toMatchObject({
      code: "UNAVAILABLE",
    });
    expect(await rejection(gateway.executor.execute("nobody.read", {}))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
    });
  });

  it("mounts a source that a reference leads nowhere for as down, and one that is disabled not at all", async () => {
    const faults = { "mcpServers.hub": "the environment variable TOKEN is not set" };
    const config = { mcpServers: { hub: everything, off: { ...everything, disabled: true } } };
    const gateway = await open(load(config, [echo], { faults }));
    expect(states(gateway)).toEqual({ hub: "down", off: "disabled", local: "up" });
    expect(await rejection(gateway.executor.execute("hub.echo", {}))).toMatchObject({
      message: expect.stringContaining("TOKEN is not set"),
    });
    expect(await rejection(gateway.executor.execute("off.echo", {}))).toMatchObject({
      code: "UNAVAILABLE",
      retryable: false,
      message: expect.stringContaining("disabled"),
    });
  });

  it("says that modules cannot be loaded to whoever calls what may be in them", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-gateway-"));
    await writeFile(join(folder, "ops.mjs"), "export const x = {");
    const gateway = await open(load({ operations: "*.mjs" }, [], { baseDir: folder }));
    expect(states(gateway)).toEqual({ local: "down" });
    expect(gateway.reports()[0]?.state).toMatchObject({ reason: expect.stringContaining("ops.mjs") });
    expect(await rejection(gateway.executor.execute("any.thing"))).toMatchObject({ code: "UNAVAILABLE" });
    await writeFile(
      join(folder, "ops.mjs"),
      `export const x = { namespace: "any", name: "thing", version: "1.0.0", type: "query", description: "", handler: () => 1 };`,
    );
    await gateway.reload(load({ operations: "*.mjs" }, [], { baseDir: folder }));
    expect((await gateway.executor.execute("any.thing")).data).toBe(1);
    await rm(folder, { recursive: true });
  });

  it("keeps the namespace of a source for that source, up or down, and says what is left out", async () => {
    const warnings: string[] = [];
    const twins = [query("every.echo", () => "local"), query("gone.read", () => "local")];
    const config = { mcpServers: { every: everything, gone: { command: "no-such-command-here" } } };
    const gateway = await open(load(config, [...twins, echo]), {
      onWarning: (message) => warnings.push(message),
    });
    expect(gateway.sourceOf("every.echo")).toBe("every");
    expect(await rejection(gateway.executor.execute("gone.read", {}))).toMatchObject({ code: "UNAVAILABLE" });
    const local = gateway.reports().find(({ name }) => name === "local");
    expect(local?.operations).toBe(1);
    expect(local?.unusable.map(({ name }) => name)).toEqual(["every.echo", "gone.read"]);
    expect(warnings.filter((message) => message.includes("every.echo"))).toHaveLength(1);
  });

  it("holds policies of sources and operations around calls", async () => {
    let runs = 0;
    const now = query("local.now", () => ++runs);
    const secret = query("local.secret", () => "s");
    const config: GatewayConfig = {
      mcpServers: { every: { ...everything, policy: { allow: ["get-*"], deny: ["get-env"] } } },
      policies: { "local.now": { cacheMs: 60_000 }, "local.secret": { scopes: ["secrets"] } },
    };
    const gateway = await open(load(config, [now, secret]));
    const { executor } = gateway;
    expect(
      ids(gateway)
        .filter((id) => id.startsWith("every."))
        .every((id) => id.startsWith("every.get-")),
    ).toBe(true);
    expect(ids(gateway)).not.toContain("every.get-env");
    expect([(await executor.execute("local.now")).data, (await executor.execute("local.now")).data]).toEqual([
      1, 1,
    ]);
    expect(await rejection(executor.execute("local.secret"))).toMatchObject({ code: "UNAUTHENTICATED" });
    const identity = { subject: "ada", scopes: ["secrets"] };
    expect((await executor.execute("local.secret", undefined, { identity })).data).toBe("s");
  });

  it("starts what is not needed at once when one of its operations is first called, from within a handler too", async () => {
    const nested = query("local.nested", (_, { execute }) => execute("every.echo", { message: "hi" }));
    const gateway = await open(load({ mcpServers: { every: everything, idle: everything } }, [nested]), {
      startNow: (name) => name === "local",
    });
    expect(states(gateway)).toEqual({ local: "up" });
    const { data } = await gateway.executor.execute("local.nested", {});
    expect(JSON.stringify(data)).toContain("hi");
    expect(states(gateway)).toEqual({ every: "up", local: "up" });
  });

  it("lets calls wait for a source that is being connected to, for as long as they may", async () => {
    const gateway = await createGateway(
      load({ mcpServers: { every: everything, slow: { command: "sleep", args: ["60"] } } }),
    );
    gateways.push(gateway);
    const early = gateway.executor.execute("every.echo", { message: "early" });
    const never = gateway.executor.execute("slow.read", {}, { timeoutMs: 300 });
    expect(await rejection(never)).toMatchObject({ code: "TIMEOUT" });
    expect(JSON.stringify((await early).data)).toContain("early");
    expect(await rejection(gateway.executor.execute("every.nope", {}))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
    });
  });

  it("lets no call wait for a source whose operation policies leave out", async () => {
    const hanging = { command: "sleep", args: ["60"] };
    const config: GatewayConfig = {
      mcpServers: { slow: { ...hanging, policy: { deny: ["drop"] } }, shut: hanging },
      policies: { "shut.*": { enabled: false }, "slow.wri*": { enabled: false } },
    };
    const gateway = await createGateway(load(config));
    gateways.push(gateway);
    for (const id of ["slow.drop", "slow.write", "shut.read"]) {
      const refused = await rejection(gateway.executor.execute(id, {}));
      expect(refused).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    }
    const allowed = gateway.executor.execute("slow.read", {}, { timeoutMs: 100 });
    expect(await rejection(allowed)).toMatchObject({ code: "TIMEOUT" });
    expect(states(gateway)).toEqual({ slow: "connecting", shut: "connecting" });
  });

  it("ends the wait of calls whose operation policies leave out meanwhile, and of no others", async () => {
    const mcpServers = { slow: { command: "sleep", args: ["60"] } };
    const gateway = await createGateway(load({ mcpServers }));
    gateways.push(gateway);
    const waiting = rejection(gateway.executor.execute("slow.write", {}));
    const other = rejection(gateway.executor.execute("slow.read", {}, { timeoutMs: 1_000 }));
    await gateway.reload(load({ mcpServers, policies: { "slow.write": { enabled: false } } }));
    expect(await waiting).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    expect(await other).toMatchObject({ code: "TIMEOUT" });
    expect(states(gateway)).toEqual({ slow: "connecting" });
  });

  it("counts what policies left, and says whose an operation is", async () => {
    const config: GatewayConfig = {
      mcpServers: { every: { ...everything, policy: { allow: ["echo", "get-sum"] } } },
    };
    const gateway = await open(load(config, [echo]));
    expect(gateway.reports().map(({ name, operations }) => [name, operations])).toEqual([
      ["every", 2],
      ["local", 1],
    ]);
    expect([
      gateway.sourceOf("every.echo"),
      gateway.sourceOf("local.echo"),
      gateway.sourceOf("every.get-env"),
    ]).toEqual(["every", "local", undefined]);
  });
});

const AUTH = { auth: { tokens: { ann: { token: "a-token-of-ann-0123456789" } } } };

/** A gateway with calls of several callers: `local.wait` lasts until `end`. */
async function crowded(config: GatewayConfig) {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const put = defineOperation({ ...query("local.put", () => 1), type: "mutation" });
  const operations = [query("local.wait", () => ended), put, echo];
  const gateway = await open(load(config, operations));
  const call = (id: string, subject: string, options: ExecuteOptions = {}) =>
    gateway.executor.execute(id, undefined, { identity: { subject }, ...options });
  const outcomeOf = (called: Promise<unknown>): Promise<string> =>
    called.then(
      () => "ok",
      (thrown: Error) => thrown.message,
    );
  return { gateway, config, operations, call, outcomeOf, end };
}

describe("reloading", () => {
  it("keeps what is the same, mounts what is new, drops what is gone", async () => {
    const gateway = await open(load({ mcpServers: { a: everything, b: everything } }, [echo]));
    const [kept] = gateway.sources;
    let told = 0;
    gateway.onSources(() => told++);
    await gateway.reload(load({ mcpServers: { a: everything, c: everything } }, [echo]));
    expect(gateway.sources[0]).toBe(kept);
    expect(states(gateway)).toEqual({ a: "up", c: "up", local: "up" });
    expect(ids(gateway)).toContain("c.echo");
    expect(ids(gateway)).not.toContain("b.echo");
    expect(told).toBeGreaterThan(0);
  });

  it("lets calls under way end on the source they began on", async () => {
    const long = { duration: 2, steps: 2 };
    const gateway = await open(load({ mcpServers: { a: everything } }));
    const running = gateway.executor.execute("a.trigger-long-running-operation", long);
    await sleep(300);
    await gateway.reload(load({ mcpServers: { a: { ...everything, recoverJson: true } } }));
    const during = gateway.executor.execute("a.echo", { message: "new" });
    expect(JSON.stringify((await during).data)).toContain("new");
    expect(JSON.stringify((await running).data)).toMatch(/completed/i);
  });

  it("takes other policies without another source", async () => {
    const gateway = await open(load({ mcpServers: { a: everything } }, [echo]));
    const [source] = gateway.sources;
    await gateway.reload(
      load(
        {
          mcpServers: { a: { ...everything, policy: { deny: ["echo"] } } },
          policies: { "local.*": { enabled: false } },
        },
        [echo],
      ),
    );
    expect(gateway.sources[0]).toBe(source);
    expect(ids(gateway)).not.toContain("a.echo");
    expect(ids(gateway)).not.toContain("local.echo");
    await gateway.reload(load({ mcpServers: { a: everything } }, [echo]));
    expect(ids(gateway)).toEqual(expect.arrayContaining(["a.echo", "local.echo"]));
  });

  it("gives callers their shares of what runs once `serve.auth` comes, and all of it when that goes", async () => {
    const { gateway, config, operations, call, outcomeOf, end } = await crowded({ limits: { calls: 4 } });
    const running = ["ann", "ann", "ann"].map((subject) => outcomeOf(call("local.wait", subject)));
    const ask = async () => {
      expect(await outcomeOf(call("local.echo", "ben"))).toBe("ok");
      return await outcomeOf(call("local.echo", "ann"));
    };
    expect(await ask()).toBe("ok");
    await gateway.reload(load({ ...config, serve: AUTH }, operations));
    expect(await ask()).toContain("As many of your calls run");
    await gateway.reload(load(config, operations));
    expect(await ask()).toBe("ok");
    end();
    expect(await Promise.all(running)).toEqual(["ok", "ok", "ok"]);
  });

  it("does so too for calls that wait for their turn, and for keys of calls that are not made twice", async () => {
    const { gateway, config, operations, call, outcomeOf, end } = await crowded({
      limits: { queue: 4, idempotencyKeys: 4 },
      policies: { "local.wait": { concurrency: 1 } },
    });
    const waiting = ["ann", "ann", "ann", "ann"].map((subject) => outcomeOf(call("local.wait", subject)));
    let keys = 0;
    const ask = async () => {
      expect(await outcomeOf(call("local.wait", "ben", { timeoutMs: 100 }))).toContain("deadline");
      const metadata = { idempotencyKey: `key${keys++}` };
      return await Promise.all([
        outcomeOf(call("local.wait", "ann", { timeoutMs: 500 })),
        outcomeOf(call("local.put", "ann", { metadata })),
      ]);
    };
    const whole = [expect.stringContaining("deadline"), "ok"];
    expect(await ask()).toEqual(whole);
    await gateway.reload(load({ ...config, serve: AUTH }, operations));
    expect(await ask()).toEqual([
      expect.stringContaining("As many of your calls wait"),
      expect.stringContaining("As many Idempotency-Keys are kept"),
    ]);
    await gateway.reload(load(config, operations));
    expect(await ask()).toEqual(whole);
    end();
    expect(await Promise.all(waiting)).toEqual(["ok", "ok", "ok", "ok"]);
  });

  it("takes away at once what is gone or disabled, whatever else still starts", async () => {
    const hanging = { command: "sleep", args: ["60"] };
    const policy = { scopes: ["admin"] };
    const before = { gone: { ...everything, policy }, off: everything, other: everything };
    const gateway = await open(load({ mcpServers: before }));
    const reloading = gateway.reload(
      load({ mcpServers: { off: { ...everything, disabled: true }, other: hanging } }),
    );
    await until(() =>
      gateway.sources.some(({ name, state }) => name === "off" && state.status === "disabled"),
    );
    expect(ids(gateway).filter((id) => !id.startsWith("other."))).toEqual([]);
    expect(await rejection(gateway.executor.execute("gone.echo", {}))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
    });
    expect(await rejection(gateway.executor.execute("off.echo", {}))).toMatchObject({ code: "UNAVAILABLE" });
    expect(ids(gateway)).toContain("other.echo");
    await gateway.close();
    await reloading;
  });

  it("does not wait for a source that hangs when there is something newer to do", async () => {
    const gateway = await open(load({ mcpServers: { a: everything } }, [echo]));
    const begun = join(await mkdtemp(join(tmpdir(), "waybill-hanging-")), "begun");
    const script = `require("node:fs").writeFileSync(${JSON.stringify(begun)}, ""); setInterval(() => {}, 1000);`;
    const hanging = { command: process.execPath, args: ["-e", script], connectTimeoutMs: 3_600_000 };
    const first = gateway.reload(load({ mcpServers: { a: hanging } }, [echo]));
    await until(() => existsSync(begun));
    const second = gateway.reload(load({ policies: { "local.*": { enabled: false } } }, [echo]));
    await second;
    expect(ids(gateway)).toEqual([]);
    await first;
    const last = gateway.reload(load({ mcpServers: { b: hanging } }, [echo]));
    await gateway.close();
    await last;
  });

  it("of many at once comes to the last one, and closing in the middle leaves nothing", async () => {
    const gateway = await open(load({}, [echo]));
    const reloads = ["a", "b", "c"].map((name) =>
      gateway.reload(load({ mcpServers: { [name]: everything } }, [echo])),
    );
    await Promise.all(reloads);
    expect(states(gateway)).toEqual({ c: "up", local: "up" });
    const last = gateway.reload(load({ mcpServers: { d: everything } }, [echo]));
    await gateway.close();
    await last;
    expect(Object.values(states(gateway)).every((status) => status === "closed")).toBe(true);
  });
});
