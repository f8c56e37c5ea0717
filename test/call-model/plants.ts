import type { AnswerEvent, AskerEvent, AskLine, Bus, CallRequested } from "../../src/call/index.ts";
import { around } from "./watched-bus.ts";
import type { Plant } from "./world.ts";

type Receive = (event: AnswerEvent) => void;

/** An asking side that does something else with what it receives. */
function receiving(change: (event: AnswerEvent, receive: Receive, request: CallRequested) => void): Plant {
  const asking = (bus: Bus) =>
    around(bus, {
      request: (request, asker) =>
        bus.request(request, {
          hasFreshId: asker.hasFreshId,
          receive: (event) => change(event, (changed) => asker.receive(changed), request),
          lost: (error) => asker.lost(error),
        }),
    });
  return { asking };
}

/** An asking side that does something else with what it sends. */
function sending(change: (event: AskerEvent, send: AskLine["send"]) => void): Plant {
  const asking = (bus: Bus) =>
    around(bus, {
      request(request, asker) {
        const line = bus.request(request, asker);
        return { send: (event) => change(event, (changed) => line.send(changed)), close: () => line.close() };
      },
    });
  return { asking };
}

/** An answering side that does something else with what it is asked. */
function answering(
  change: (request: CallRequested) => { request: CallRequested; hasFreshId?: boolean },
): Plant {
  return {
    answering: (bus) =>
      around(bus, {
        join: (route, take) =>
          bus.join(route, (delivery, line) => take({ ...delivery, ...change(delivery.request) }, line)),
      }),
  };
}

/** The same shapes with nothing wrong, which the model must not object to. */
export const HARMLESS: readonly (() => Plant)[] = [
  () => receiving((event, receive) => receive(event)),
  () => sending((event, send) => send(event)),
  () => answering((request) => ({ request })),
];

/** Defects the model has to find, by what is wrong. */
export const PLANTS: Readonly<Record<string, () => Plant>> = {
  "a response that is lost": () =>
    receiving((event, receive) => {
      if (event.type !== "call.responded" || event.sequence !== undefined) receive(event);
    }),
  "an answer for another call that settles this one": () =>
    receiving((event, receive, { requestId }) => receive({ ...event, requestId })),
  "a tool error that is told as an error": () =>
    receiving((event, receive) => {
      const isError = event.type === "call.responded" && "isError" in event.output.meta;
      const error = { code: "EXECUTION_ERROR", message: "", retryable: false, correctable: false };
      receive(isError ? { type: "call.error", requestId: event.requestId, error } : event);
    }),
  "an answer that is delivered twice": () =>
    receiving((event, receive) => {
      receive(event);
      receive(event);
    }),
  "a gap that is closed by counting anew": () => {
    const counts = new Map<string, number>();
    return receiving((event, receive) => {
      if (event.type !== "call.responded" || event.sequence === undefined) return receive(event);
      const sequence = counts.get(event.requestId) ?? 0;
      counts.set(event.requestId, sequence + 1);
      receive({ ...event, sequence });
    });
  },
  "a handler that is not told when its caller gives up": () =>
    sending((event, send) => {
      if (event.type !== "call.aborted") send(event);
    }),
  "a reader who grants twice what it has read": () =>
    sending((event, send) =>
      send(event.type === "call.credit" ? { ...event, credit: 2 * event.credit } : event),
    ),
  "a request that runs again when it comes again": () =>
    answering((request) => ({ request, hasFreshId: true })),
  "a deadline that never reaches the handler": () =>
    answering(({ timeLeftMs: _, ...request }) => ({ request })),
  "a stream that is read ahead of what was granted": () =>
    answering((request) => ({
      request: request.credit === undefined ? request : { ...request, credit: request.credit + 1 },
    })),
  "a timer that is left behind": () => ({
    asking: (bus) =>
      around(bus, {
        request(request, asker) {
          setInterval(() => {}, 1_000_000);
          return bus.request(request, asker);
        },
      }),
  }),
};
