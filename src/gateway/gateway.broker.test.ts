import { expect, it } from "vitest";
import { atEnd } from "../../test/gateway-sources.ts";
import { query, rejection } from "../../test/make-operation.ts";
import { natsSuite, startNats } from "../../test/nats-server.ts";
import { loadedConfig } from "../../test/served-gateway.ts";
import { serveCalls } from "../call/call-handler.ts";
import { connectNatsBus } from "../call/nats/nats-bus.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { createGateway } from "./gateway.ts";
import { serveGateway } from "./serve/serve-gateway.ts";

natsSuite("a gateway that mounts a bus", () => {
  it("RE-30 is ready once the operations of the bus are mounted, and calls wait until then", async () => {
    const broker = await startNats();
    atEnd(() => broker.stop());
    const bus = await connectNatsBus({ servers: broker.url });
    atEnd(() => bus.close());
    await serveCalls(new OperationRegistry([query("far.greet", () => "hello")]), bus, { name: "far" });
    const loaded = loadedConfig({ bus: { nats: broker.url, mount: true } });
    const gateway = await createGateway(loaded);
    atEnd(() => gateway.close());
    const server = await serveGateway(gateway, loaded);
    atEnd(() => server.close({ timeoutMs: 0 }));
    // Nothing is mounted yet.
    expect([...gateway.executor.operations]).toEqual([]);
    const waiting = gateway.executor.execute("far.greet");
    const unknown = rejection(gateway.executor.execute("near.nothing"));
    const early = await fetch(`${server.url}/ready`);
    const isMounted = gateway.executor.get("far.greet") !== undefined;
    expect(early.status).toBe(isMounted ? 200 : 503);
    expect((await waiting).data).toBe("hello");
    expect(await unknown).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    await gateway.ready;
    expect((await fetch(`${server.url}/ready`)).status).toBe(200);
    expect(gateway.executor.get("far.greet")).toBeDefined();
  });
});
