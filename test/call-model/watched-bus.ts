import type {
  AnswerEvent,
  Answerer,
  AnswerLine,
  Asker,
  AskerEvent,
  AskLine,
  Bus,
  CallRequested,
  Take,
} from "../../src/call/index.ts";
import { type CallError, type Identity, isCallError } from "../../src/index.ts";

/** Hears what passes between the asking side and its bus; each request has a number of its own. */
export interface AskingWatcher {
  asked(ask: number, request: CallRequested, asker: Asker): void;
  sent(ask: number, event: AskerEvent): void;
  received(ask: number, event: AnswerEvent): void;
  lost(ask: number, code: string): void;
}

/** Hears what passes between one answering side and its bus; each delivery has a number of its own. */
export interface AnsweringWatcher {
  taken(answer: number, request: CallRequested, service: number): void;
  replied(answer: number, event: AnswerEvent): void;
  heard(answer: number, event: AskerEvent): void;
  callerLost(answer: number): void;
}

let lastNumber = 0;

/** A bus as the asking side sees it, with everything that passes told first. */
export function watchAsking(bus: Bus, watcher: AskingWatcher): Bus {
  return around(bus, {
    request(request: CallRequested, asker: Asker, identity?: Identity): AskLine {
      const ask = ++lastNumber;
      watcher.asked(ask, request, asker);
      const told: Asker = {
        hasFreshId: asker.hasFreshId,
        receive(event) {
          watcher.received(ask, event);
          asker.receive(event);
        },
        lost(error: CallError) {
          watcher.lost(ask, error.code);
          asker.lost(error);
        },
      };
      try {
        const line = bus.request(request, told, identity);
        return {
          send(event) {
            watcher.sent(ask, event);
            line.send(event);
          },
          close: () => line.close(),
        };
      } catch (thrown) {
        watcher.lost(ask, isCallError(thrown) ? thrown.code : "EXECUTION_ERROR");
        throw thrown;
      }
    },
  });
}

/** A bus as one answering side sees it, with everything that passes told first. */
export function watchAnswering(bus: Bus, watcher: AnsweringWatcher, service: number): Bus {
  const watched =
    (take: Take): Take =>
    (delivery, line) => {
      const answer = ++lastNumber;
      watcher.taken(answer, delivery.request, service);
      const told: AnswerLine = {
        reply(event) {
          watcher.replied(answer, event);
          line.reply(event);
        },
        flush: () => line.flush(),
        close: () => line.close(),
      };
      const answerer = take(delivery, told);
      return answerer && watchAnswerer(answerer, watcher, answer);
    };
  return around(bus, { join: (route, take) => bus.join(route, watched(take)) });
}

function watchAnswerer(answerer: Answerer, watcher: AnsweringWatcher, answer: number): Answerer {
  return {
    receive(event) {
      watcher.heard(answer, event);
      answerer.receive(event);
    },
    lost() {
      watcher.callerLost(answer);
      answerer.lost();
    },
  };
}

/** A bus that does some things differently from another one. */
export function around(bus: Bus, changes: Partial<Bus>): Bus {
  return {
    request: (request, asker, identity) => bus.request(request, asker, identity),
    join: (route, take) => bus.join(route, take),
    announce: (notice) => bus.announce(notice),
    watch: (watcher) => bus.watch(watcher),
    counters: bus.counters,
    carriesIdentity: bus.carriesIdentity,
    flush: () => bus.flush(),
    close: () => bus.close(),
    ...changes,
  };
}
