import {
  type Asker,
  type AskerEvent,
  type Bus,
  CallObservers,
  type CallRequested,
  createMemoryBus,
  PendingRequestMap,
  type PendingRequestMapOptions,
} from "../src/call/index.ts";

/** An asking side whose other end is in the hands of a test. */
export interface OpenEnd {
  readonly map: PendingRequestMap;
  /** What was asked last, and the private reply path of that request. */
  last(): { readonly request: CallRequested; readonly asker: Asker };
  /** What the asking side sent afterwards. */
  readonly sent: readonly AskerEvent[];
  /** Request ids of the lines it closed. */
  readonly closed: readonly string[];
}

/** Makes a bus on which the test itself answers; one that writes messages down where it `isMeasured`. */
export function openEnd(options?: PendingRequestMapOptions, isMeasured = false): OpenEnd {
  const asked: { request: CallRequested; asker: Asker }[] = [];
  const sent: AskerEvent[] = [];
  const closed: string[] = [];
  const bus: Bus = {
    ...createMemoryBus(),
    carriesIdentity: true,
    observers: new CallObservers({ isMeasured }),
    request(request, asker) {
      asked.push({ request, asker });
      return { send: (event) => void sent.push(event), close: () => void closed.push(request.requestId) };
    },
  };
  const map = new PendingRequestMap(bus, options);
  const last = () => {
    const found = asked.at(-1);
    if (found === undefined) throw new Error("Nothing was asked.");
    return found;
  };
  return { map, last, sent, closed };
}
