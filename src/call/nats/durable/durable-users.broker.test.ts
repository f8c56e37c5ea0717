import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { query, rejection } from "../../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../../test/nats-server.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { fromBrokerUser } from "../../credentials/token-verifier.ts";
import { openDurableCalls } from "./durable-calls.ts";
import { serveDurableCalls } from "./durable-worker.ts";

const CONFIG = `authorization { users: [
  { user: worker, password: w }
  { user: ada, password: a, permissions: {
    publish: ["waybill.durable.ada.>", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*"]
    subscribe: ["waybill.durable-result.ada.>", "_INBOX.>"]
  } }
] }`;

natsSuite("users of the broker", () => {
  let server: NatsServer | undefined;
  const open: NatsConnection[] = [];
  const login = async (user: string, pass: string): Promise<NatsConnection> => {
    const connection = await connect({ servers: server?.url ?? "", user, pass });
    open.push(connection);
    return connection;
  };
  beforeAll(async () => {
    server = await startNats({ jetstream: true, config: CONFIG });
  });
  afterAll(async () => {
    await Promise.all(open.map((connection) => connection.close()));
    await server?.stop();
  });

  it("Durable: the broker's permissions bind a caller to its user, and workers see whom", async () => {
    const who = query("x.who", (_, { identity }) => identity?.subject, { durable: true });
    const worker = await serveDurableCalls(await login("worker", "w"), new OperationRegistry([who]), {
      authenticate: ({ user }) => (user === undefined ? undefined : { subject: user }),
    });
    const ada = await login("ada", "a");
    const calls = await openDurableCalls(ada, { user: "ada" });
    expect(unwrap(await calls.execute("x.who"))).toBe("ada");
    const asBob = await openDurableCalls(ada, { user: "bob" });
    expect(await rejection(asBob.submit("x.who"))).toMatchObject({ code: "ACCESS_DENIED" });
    await worker.drain();
  });

  it("Durable: without a user the caller is anonymous, and nobody is asked who that is", async () => {
    const who = query("y.who", (_, { identity }) => identity?.subject ?? "nobody", { durable: true });
    const toIdentity = vi.fn((user: string) => ({ subject: user }));
    const connection = await login("worker", "w");
    const worker = await serveDurableCalls(connection, new OperationRegistry([who]), {
      authenticate: fromBrokerUser(toIdentity),
    });
    const calls = await openDurableCalls(connection);
    expect(unwrap(await calls.execute("y.who"))).toBe("nobody");
    expect(toIdentity).not.toHaveBeenCalled();
    const named = await openDurableCalls(connection, { user: "eve" });
    expect(unwrap(await named.execute("y.who"))).toBe("eve");
    await worker.drain();
  });
});
