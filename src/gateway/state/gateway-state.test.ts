import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { defineOperation, unwrap } from "../../index.ts";
import { loadConfigObject } from "../config/read-config.ts";
import { createGateway, type Gateway } from "../gateway.ts";
import { serveGateway } from "../serve/serve-gateway.ts";

const open = async (folder: string, ran: string[], warnings: string[] = []): Promise<Gateway> => {
  const order = defineOperation({
    namespace: "shop",
    name: "order",
    version: "1.0.0",
    type: "mutation",
    description: "",
    handler: (input) => ran.push(JSON.stringify(input)),
  });
  const loaded = { ...loadedConfig({ state: { store: { files: "state" } } }), baseDir: folder };
  const onWarning = (message: string): void => void warnings.push(message);
  const gateway = await createGateway({ ...loaded, localOperations: [order] }, { onWarning });
  onTestFinished(() => gateway.close());
  return gateway;
};

const makeFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "waybill-state-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const place = (gateway: Gateway, idempotencyKey: string) =>
  gateway.executor.execute("shop.order", {}, { metadata: { idempotencyKey } });

it("a gateway with a folder knows after a restart what it ran before", async () => {
  const [folder, ran] = [makeFolder(), [] as string[]];
  const first = await open(folder, ran);
  expect(unwrap(await place(first, "k"))).toBe(1);
  expect(first.state.report()).toMatchObject({ store: "files", status: "up" });
  await first.close();
  const second = await open(folder, ran);
  expect(unwrap(await place(second, "k"))).toBe(1);
  expect(unwrap(await place(second, "other"))).toBe(2);
  expect(ran).toHaveLength(2);
});

it("a call with a key over HTTP is known as far as it came, wherever its process was killed", async () => {
  const [folder, ran] = [makeFolder(), [] as string[]];
  const path = join(folder, "state", "state.log");
  const order = async (input: object, status: number, expected: unknown, replayed: string | null) => {
    const gateway = await open(folder, ran);
    const loaded = loadedConfig({ state: { store: { files: "state" } } });
    const server = await serveGateway(gateway, { ...loaded, baseDir: folder });
    onTestFinished(() => server.close({ timeoutMs: 0 }));
    const headers = { "content-type": "application/json", "idempotency-key": "k" };
    const init = { method: "POST", headers, body: JSON.stringify(input) };
    const answer = await fetch(`${server.url}/api/shop/order`, init);
    expect(await answer.json()).toEqual(expected);
    expect([answer.status, answer.headers.get("idempotency-replayed")]).toEqual([status, replayed]);
    await server.close({ timeoutMs: 0 });
    await gateway.close();
  };
  await order({}, 200, 1, null);
  // The HTTP API and the policies claim the key, and end it in the other order.
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.includes(`"c":"keys-`));
  const after = (step: number): void => writeFileSync(path, lines.slice(0, step).join("\n").concat("\n"));
  const unknown = expect.objectContaining({ details: { reason: "unknown" } });
  after(4);
  await order({}, 200, 1, "true");
  after(3);
  await order({}, 200, 1, "true");
  await order({}, 200, 1, "true");
  after(2);
  await order({}, 409, unknown, null);
  await order({}, 409, unknown, null);
  expect(ran).toHaveLength(1);
  after(1);
  await order({ other: 1 }, 422, expect.objectContaining({ details: { reason: "other_input" } }), null);
  await order({}, 200, 2, null);
  await order({}, 200, 2, "true");
  expect(ran).toHaveLength(2);
});

it("a second gateway with the same folder runs no call with a key, and says why", async () => {
  const [folder, ran, warnings] = [makeFolder(), [] as string[], [] as string[]];
  const first = await open(folder, ran);
  await place(first, "k");
  const second = await open(folder, ran, warnings);
  await expect(place(second, "other")).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringContaining("The call did not run"),
    details: { reason: "unreachable", retryAfterMs: 1_000 },
  });
  expect(warnings[0]).toContain(`is in use by the process ${process.pid}`);
  expect(ran).toHaveLength(1);
});

it("a config that wants its state at a broker needs a bus", async () => {
  const loading = loadConfigObject({ state: { store: "nats" } }, { baseDir: "/" });
  await expect(loading).rejects.toThrow('state.store is "nats", and there is no bus');
});
