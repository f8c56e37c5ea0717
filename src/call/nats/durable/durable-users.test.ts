import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { query, rejection } from "../../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../../test/nats-server.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
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
});
