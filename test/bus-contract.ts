import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe } from "vitest";
import {
  type Bus,
  CallHandler,
  type CallHandlerOptions,
  createRemoteRegistry,
  createTokenSigner,
  createTokenVerifier,
  type ObservableBus,
  PendingRequestMap,
  type PendingRequestMapOptions,
  type RemoteRegistry,
} from "../src/call/index.ts";
import { type AnyOperation, OperationRegistry } from "../src/index.ts";
import { describeCalls } from "./bus-contract-calls.ts";
import { describeEnds } from "./bus-contract-ends.ts";
import { describeFleet } from "./bus-contract-fleet.ts";
import { describeHops } from "./bus-contract-hops.ts";
import { describeObserver } from "./bus-contract-observer.ts";
import { describeSizes } from "./bus-contract-sizes.ts";
import { describeStreams } from "./bus-contract-streams.ts";

/** Two sides of one bus, as two processes would hold them. */
export interface BusPair {
  readonly asking: ObservableBus;
  readonly answering: ObservableBus;
  /** One side more. */
  more(): Promise<ObservableBus>;
  close(): Promise<void>;
}

/** What a bus has to bring along to be tested. */
export interface BusRow {
  connect(): Promise<BusPair>;
  /** Bytes it carries at a time, and in chunks; left out by a bus that writes nothing down. */
  readonly sizes?: { readonly message: number; readonly cap: number };
}

/** A service that was started for one test. */
export interface Service {
  readonly registry: OperationRegistry;
  readonly handler: CallHandler;
}

/** What every test of the contract works with. */
export interface Bench {
  readonly pair: BusPair;
  readonly sizes: BusRow["sizes"];
  /** Serves operations, on the answering side unless told. */
  serve(operations: readonly AnyOperation[], options?: CallHandlerOptions, bus?: Bus): Promise<Service>;
  /** An asking side that can prove any identity. */
  ask(options?: PendingRequestMapOptions, bus?: Bus): PendingRequestMap;
  /** Finds what is served. */
  find(bus?: Bus): Promise<RemoteRegistry>;
}

const SECRET = randomBytes(32);
const ISSUER = "contract";
const credentials = createTokenSigner({ key: SECRET, issuer: ISSUER });

/** Every test of the contract, for one bus. */
export function describeBus(name: string, row: BusRow): void {
  describe(`${name} as a bus`, () => {
    let bench: (Bench & { close(): Promise<void> }) | undefined;
    beforeEach(async () => {
      bench = openBench(await row.connect(), row.sizes);
    });
    afterEach(async () => {
      await bench?.close();
    });
    const current = (): Bench => {
      if (bench === undefined) throw new Error("There is a bench within tests only.");
      return bench;
    };
    describeCalls(current);
    describeEnds(current);
    describeStreams(current);
    describeHops(current);
    describeSizes(current, row.sizes);
    describeFleet(current);
    describeObserver(current);
  });
}

function openBench(pair: BusPair, sizes: BusRow["sizes"]): Bench & { close(): Promise<void> } {
  const closing: (() => Promise<void>)[] = [];
  const verify = createTokenVerifier({ keys: SECRET, issuer: ISSUER });
  return {
    pair,
    sizes,
    async serve(operations, options = {}, bus = pair.answering) {
      const registry = new OperationRegistry(operations);
      const authenticate = bus.carriesIdentity ? undefined : verify;
      const handler = new CallHandler(registry, bus, { authenticate, ...options });
      await handler.start();
      closing.push(() => handler.drain({ timeoutMs: 0 }));
      return { registry, handler };
    },
    ask(options, bus = pair.asking) {
      const map = new PendingRequestMap(bus, { credentials, ...options });
      closing.push(() => map.close());
      return map;
    },
    async find(bus = pair.asking) {
      const remote = await createRemoteRegistry(bus, { credentials });
      closing.push(() => remote.close());
      return remote;
    },
    async close() {
      for (const close of closing.reverse()) await close();
      await pair.close();
    },
  };
}

/** Small, so that much goes in chunks; eight times the cap is what uploads may take at a time. */
export const CONTRACT_SIZES = { message: 4_096, cap: 65_536 };
/** Seldom enough for a busy machine: nobody counts as gone who merely did not get to run. */
export const CONTRACT_OPTIONS = { beatMs: 500, limits: { messageBytes: CONTRACT_SIZES.cap } };

/** As many sides as a test asks for, closed together. */
export async function pairOf(connect: () => Promise<ObservableBus>): Promise<BusPair> {
  const open: ObservableBus[] = [];
  const more = async () => {
    const bus = await connect();
    open.push(bus);
    return bus;
  };
  const close = async () => {
    for (const bus of open) await bus.close();
  };
  return { asking: await more(), answering: await more(), more, close };
}
