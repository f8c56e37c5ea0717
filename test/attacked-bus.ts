import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type CallCounters, CallHandler, PendingRequestMap } from "../src/call/index.ts";
import { connectNatsBus, type NatsBus } from "../src/call/nats/index.ts";
import { localEnvelope, OperationRegistry } from "../src/index.ts";
import { query, sleep, stream } from "./make-operation.ts";
import { type NatsServer, startNats } from "./nats-server.ts";

/** Bytes of one event on an attacked bus. */
export const CAP: number = 2 * 1024 * 1024;

/** A message of the protocol, as anybody can write one. */
export const say = (message: object): string => JSON.stringify({ v: 1, ...message });

/** The event of a request for `a.echo`, or for what is said. */
export const request = (more: object = {}): { readonly requestId: string } => ({
  ...{ type: "call.requested", requestId: crypto.randomUUID(), operationId: "a.echo" },
  ...more,
});

/** A message that answers a request. */
export const answer = (requestId: string, data: unknown): string =>
  say({ event: { type: "call.responded", requestId, output: localEnvelope(data, "a.x") } });

/** A request as somebody hears it who may listen to everything. */
interface Overheard {
  readonly data: Uint8Array;
  readonly subject: string;
  readonly requestId: string;
  readonly replyTo: string;
  /** The reply path without its last part. */
  readonly inbox: string;
}

/** Two sides of a bus on a real broker, and somebody else who is connected to it. */
export class AttackedBus {
  readonly asking: NatsBus;
  readonly answering: NatsBus;
  readonly attacker: NatsConnection;
  readonly map: PendingRequestMap;
  readonly handler: CallHandler;
  /** What `a.slow` has been through. */
  readonly ran = { slow: 0, aborted: 0 };
  #finishSlow: () => void = () => {};
  readonly #slowEnds = new Promise<void>((resolve) => {
    this.#finishSlow = resolve;
  });

  private constructor(asking: NatsBus, answering: NatsBus, attacker: NatsConnection) {
    this.asking = asking;
    this.answering = answering;
    this.attacker = attacker;
    this.map = new PendingRequestMap(asking);
    const count = async function* () {
      for (let n = 0; ; n++) yield n;
    };
    const operations = [
      query("a.echo", (input) => input),
      query("a.slow", (input, { signal }) => this.#runSlow(input, signal)),
      stream("a.count", count),
    ];
    this.handler = new CallHandler(new OperationRegistry(operations), answering);
  }

  static async open(servers: string): Promise<AttackedBus> {
    // Seldom enough for a busy machine: nobody counts as gone who merely did not get to run.
    const options = { beatMs: 500, limits: { messageBytes: CAP, services: 1_000 } };
    const connectBus = () => connectNatsBus({ servers }, options);
    const attacked = new AttackedBus(await connectBus(), await connectBus(), await connect({ servers }));
    await attacked.handler.start();
    return attacked;
  }

  async close(): Promise<void> {
    await this.map.close();
    await this.handler.drain({ timeoutMs: 0 });
    await this.attacker.close();
    await Promise.all([this.asking.close(), this.answering.close()]);
  }

  /** Everything was heard, nobody crashed, and the service answers. */
  async survives(): Promise<void> {
    await this.heard();
    await sleep(10);
    expect((await this.map.call("a.echo", "still", { timeoutMs: 60_000 })).data).toBe("still");
    expect(this.map.size).toBe(0);
  }

  /** What the attacker has said by now has reached both sides. */
  async heard(): Promise<void> {
    await this.attacker.flush();
    await this.asking.connection.flush();
    await this.answering.connection.flush();
  }

  /** Calls `a.slow` while somebody listens; it runs until it is told to finish, after everything that was said before. */
  async overhearSlow(): Promise<Overheard & { finish(): Promise<{ readonly data: unknown }> }> {
    const tap = this.attacker.subscribe("waybill.call.*.a.slow", { max: 1 });
    await this.attacker.flush();
    const called = this.map.call("a.slow", "true");
    for await (const message of tap) {
      const { data, reply: replyTo = "", subject } = message;
      const { requestId } = message.json<{ event: { requestId: string } }>().event;
      const finish = async () => {
        await this.heard();
        this.#finishSlow();
        return called;
      };
      return { data, subject, requestId, replyTo, inbox: replyTo.slice(0, replyTo.lastIndexOf(".")), finish };
    }
    throw new Error("Nothing was heard.");
  }

  /** The name of the answering side, which it tells everybody who sends a large input. */
  async peerOfService(): Promise<string> {
    const head = say({ event: request(), inputBytes: 1 });
    const taken = await this.attacker.request("waybill.call._.a.echo", head, { timeout: 60_000 });
    return taken.json<{ peer: string }>().peer;
  }

  /** Answers the next call of `evil.x` with these messages, as a service would that is not to be trusted. */
  async answerEvil(messages: (requestId: string) => readonly (string | Uint8Array)[]): Promise<void> {
    const requests = this.attacker.subscribe("waybill.call.*.evil.x", { queue: "waybill", max: 1 });
    await this.attacker.flush();
    void (async () => {
      for await (const message of requests) {
        const { requestId } = message.json<{ event: { requestId: string } }>().event;
        for (const text of messages(requestId)) message.respond(text);
      }
    })();
  }

  async #runSlow(input: unknown, signal: AbortSignal): Promise<unknown> {
    this.ran.slow++;
    signal.addEventListener("abort", () => this.ran.aborted++);
    await this.#slowEnds;
    return input;
  }
}

/** Which counters of a bus have grown since this was called. */
export function since(bus: NatsBus): () => Partial<CallCounters> {
  const before = bus.counters;
  return () => {
    const now = Object.entries(bus.counters) as [keyof CallCounters, number][];
    return Object.fromEntries(
      now.map(([name, count]) => [name, count - before[name]]).filter(([, grown]) => grown !== 0),
    );
  };
}

/** A broker for all tests of a suite, and a bus of its own for each. */
export function useAttackedBus(): () => AttackedBus {
  let server: NatsServer | undefined;
  let bus: AttackedBus | undefined;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(async () => {
    await server?.stop();
  });
  beforeEach(async () => {
    bus = await AttackedBus.open(server?.url ?? "");
  });
  afterEach(async () => {
    await bus?.close();
  });
  return () => {
    if (bus === undefined) throw new Error("There is a bus within tests only.");
    return bus;
  };
}
