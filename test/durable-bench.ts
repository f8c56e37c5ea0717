import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import {
  type DurableCalls,
  type DurableCallsOptions,
  type DurableWorker,
  type DurableWorkerOptions,
  openDurableCalls,
  serveDurableCalls,
} from "../src/call/nats/index.ts";
import { type AnyOperation, OperationRegistry } from "../src/index.ts";
import { type NatsServer, startNats } from "./nats-server.ts";

/** A broker for the tests of one suite, with streams of its own for each of them. */
export interface Bench {
  readonly server: NatsServer;
  readonly prefix: string;
  /** Closed after the test. */
  connect(): Promise<NatsConnection>;
  calls(options?: DurableCallsOptions): Promise<DurableCalls>;
  /** Drained after the test. */
  serve(operations: readonly AnyOperation[], options?: DurableWorkerOptions): Promise<DurableWorker>;
}

/** Starts a broker before the tests of a suite and ends it after them. */
export function useBench(config?: string): Bench {
  const open: NatsConnection[] = [];
  const workers: DurableWorker[] = [];
  let server: NatsServer | undefined;
  let tests = 0;
  beforeAll(async () => {
    server = await startNats({ jetstream: true, ...(config !== undefined && { config }) });
  });
  beforeEach(() => {
    tests += 1;
  });
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.drain({ timeoutMs: 100 })));
    await Promise.all(open.splice(0).map((connection) => connection.close()));
  });
  afterAll(() => server?.stop());
  const bench: Bench = {
    get server() {
      if (server === undefined) throw new Error("The broker runs during tests only.");
      return server;
    },
    get prefix() {
      return `test${tests}`;
    },
    async connect() {
      const connection = await connect({
        servers: bench.server.url,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 50,
      });
      open.push(connection);
      return connection;
    },
    calls: async (options) => openDurableCalls(await bench.connect(), { prefix: bench.prefix, ...options }),
    async serve(operations, options) {
      const registry = new OperationRegistry(operations);
      const worker = await serveDurableCalls(await bench.connect(), registry, {
        prefix: bench.prefix,
        // Long enough for a busy machine: nothing comes again that somebody works on.
        ackWaitMs: 5_000,
        ...options,
      });
      workers.push(worker);
      return worker;
    },
  };
  return bench;
}
