import { createGateway, serveGateway } from "../src/gateway/index.ts";
import { deskOperations, replicaConfig } from "./replica-desk.ts";

/** A replica in a process of its own, which tests can kill: `node replica-process.js <url of the broker> <name of the gateway>`. */
const [nats = "", name = ""] = process.argv.slice(2);
const { operations } = deskOperations("child");
const loaded = { ...replicaConfig({ name, bus: { nats } }), localOperations: operations };
const gateway = await createGateway(loaded, { onWarning: (message) => console.error(message) });
const server = await serveGateway(gateway, loaded, {});
console.log(`${server.url} ${gateway.state.replica}`);
