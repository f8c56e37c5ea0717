import { type Bus, createMemoryTransport, createWireBus } from "../../src/call/index.ts";
import { LossyBroker } from "./lossy-broker.ts";
import { forgedEvents, type Network } from "./network.ts";

interface Asked {
  readonly event?: { readonly requestId?: string };
  readonly seek?: string;
}

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

/** The request that a message asks for, or asks the members about: both are answered on one path. */
function requestIdOf(data: Uint8Array | undefined): string | undefined {
  if (data?.[0] !== "{".charCodeAt(0)) return undefined;
  const message = JSON.parse(new TextDecoder().decode(data)) as Asked;
  return message.event?.requestId ?? message.seek;
}

/** An answer to another request, or nothing that can be read. */
function forgedBytes(requestId: string, kind: number): Uint8Array {
  if (kind % 5 === 0) return Uint8Array.of(123, kind, 255);
  const events = forgedEvents(requestId);
  return new TextEncoder().encode(JSON.stringify({ v: 1, event: events[kind % events.length] }));
}
