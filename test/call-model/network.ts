import type { AnswerEvent, Bus } from "../../src/call/index.ts";
import { localEnvelope } from "../../src/index.ts";
import { HostileBus, type Mischief, type Waiting } from "./hostile-bus.ts";
import { around } from "./watched-bus.ts";

/** What carries the calls of one run of the model. */
export interface Network {
  /** Services that may be there at a time: a message that comes twice has to come to the same one. */
  readonly maxServices: number;
  askingBus(): Bus;
  answeringBus(service: number): Bus;
  /** Delivers one thing that waits; false when nothing may be delivered. */
  deliverOne(): boolean;
  /** Ends a service with all it runs; those who wait for it hear of it, or not. */
  cut(service: number, isTold: boolean): void;
  /** A service takes nothing more; a broker that repeats a message repeats it to the one who took it, or not at all. */
  left(): void;
  disturb(target: number, mischief: Mischief, to: Waiting["to"], pick: number): void;
  /** Sends something on the line of one call on behalf of another. */
  forge(target: number, other: number, kind: number): void;
  close(): Promise<void>;
}

/** Lines that hold back, repeat, drop and forge events. */
export function hostileNetwork(): Network {
  const bus = new HostileBus();
  const lineAt = (pick: number) => bus.lines[bus.lines.length - 1 - (pick % Math.max(1, bus.lines.length))];
  return {
    maxServices: 2,
    askingBus: () => bus,
    answeringBus: (service) => around(bus, { join: (route, take) => bus.joinAs(service, route, take) }),
    deliverOne: () => bus.deliverOne(),
    cut: (service, isTold) => bus.cut(service, isTold),
    left() {},
    disturb(target, mischief, to, pick) {
      const line = lineAt(target);
      if (line !== undefined) bus.disturb(line, mischief, to, pick);
    },
    forge(target, other, kind) {
      const line = lineAt(target);
      const requestId = lineAt(other)?.request.requestId;
      if (line === undefined || requestId === undefined || requestId === line.request.requestId) return;
      const events = forgedEvents(requestId);
      if (kind % 3 > 0) line.asker.receive(events[kind % events.length] as AnswerEvent);
      else if (kind % 2 > 0) line.answerer?.receive({ type: "call.aborted", requestId });
      else line.answerer?.receive({ type: "call.credit", requestId, credit: 100 });
    },
    close: () => bus.close(),
  };
}

/** Everything that could settle or feed a call, were it its own. */
export function forgedEvents(requestId: string): readonly AnswerEvent[] {
  const output = localEnvelope("forged", "m.once");
  const error = { code: "FORBIDDEN", message: "Forged.", retryable: false, correctable: false };
  return [
    { type: "call.responded", requestId, output },
    { type: "call.responded", requestId, output, sequence: 0 },
    { type: "call.error", requestId, error },
    { type: "call.aborted", requestId },
    { type: "call.completed", requestId, count: 0 },
    { type: "call.progress", requestId, value: "forged" },
  ];
}
