import type { Bus } from "../../src/call/bus.ts";
import type { AnswerEvent } from "../../src/call/call-events.ts";
import { createMemoryTransport } from "../../src/call/wire/memory-transport.ts";
import { createWireBus } from "../../src/call/wire/wire-bus.ts";
import { decodeMessage, encodeMessage } from "../../src/call/wire/wire-message.ts";
import { LossyBroker } from "./lossy-broker.ts";
import { forgedEvents, type Network } from "./network.ts";

/** Small enough for large results to go in chunks. */
const MESSAGE_BYTES = 480;
const BEAT_MS = 100;

/** The wire bus, on a broker that loses and repeats messages. */
export function wireNetwork(): Network {
  const broker = new LossyBroker();
  const buses: Bus[] = [];
  const services = new Map<number, Bus>();
  const connect = (): Bus => {
    const bus = createWireBus(createMemoryTransport({ broker, maxMessageBytes: MESSAGE_BYTES }), {
      beatMs: BEAT_MS,
    });
    buses.push(bus);
    return bus;
  };
  const asking = connect();
  const attacker = createMemoryTransport({ broker });
  return {
    maxServices: 1,
    askingBus: () => asking,
    answeringBus(service) {
      const bus = connect();
      broker.forget();
      services.set(service, bus);
      return bus;
    },
    deliverOne: () => false,
    cut: (service) => void services.get(service)?.close(),
    left: () => broker.forget(),
    disturb: (_, mischief, to, pick) => broker.disturb(mischief, to, pick),
    forge(target, other, kind) {
      const victim = broker.requests[target % Math.max(1, broker.requests.length)];
      const requestId = requestIdOf(broker.requests[other % Math.max(1, broker.requests.length)]?.data);
      if (victim?.replyTo === undefined || requestId === undefined) return;
      if (requestId === requestIdOf(victim.data)) return;
      attacker.publish(victim.replyTo + (kind % 4 === 0 ? "x" : ""), forgedBytes(requestId, kind));
    },
    async close() {
      for (const bus of buses) await bus.close();
      await attacker.close();
    },
  };
}

function requestIdOf(data: Uint8Array | undefined): string | undefined {
  const decoded = data && decodeMessage(data);
  return typeof decoded === "object" ? decoded.event?.requestId : undefined;
}

/** An answer to another request, or nothing that can be read. */
function forgedBytes(requestId: string, kind: number): Uint8Array {
  if (kind % 5 === 0) return Uint8Array.of(123, kind, 255);
  const events = forgedEvents(requestId);
  return encodeMessage({ event: events[kind % events.length] as AnswerEvent }, "OUTPUT_INVALID");
}
