import { LinkedSet } from "../../../core/collections/linked-set.ts";
import {
  type AbortListener,
  addAbortListener,
  LONGEST_DELAY,
  monotonicNow,
  removeAbortListener,
} from "../../../core/execution/cancellation.ts";
import { backoffMs } from "../../../core/limits/backoff.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import { bareHost, createAddressGuard } from "../../../http/address-guard.ts";
import type {
  OutgoingRequest,
  ResponseHead,
  SendOptions,
  StreamedResponse,
  WholeResponse,
} from "../http-message.ts";
import { OriginPools, type TransportSeams } from "./origin-pools.ts";
import { isRedirect, toNextHop } from "./redirects.ts";
import { RequestSlots } from "./request-slots.ts";
import { Exchange } from "./send-request.ts";
import { abortError, closedError, mayPass, type Sent, transportError } from "./transport-errors.ts";
import {
  type CreateTransportOptions,
  checkTransportOptions,
  type TransportSettings,
  toTransportSettings,
} from "./transport-settings.ts";

type Response = WholeResponse | StreamedResponse;

/** Creates the transport of one source; throws a `TypeError` for options that cannot work. */
export function createTransport(options: CreateTransportOptions, seams: TransportSeams = {}): HttpTransport {
  checkTransportOptions(options);
  return new HttpTransport(options, seams);
}

/** One request over all its attempts. */
class Call implements Sent {
  readonly request: OutgoingRequest;
  readonly options: SendOptions;
  readonly streamed: boolean;
  /** Where it goes, or went last. */
  host = "The server";
  port: string | undefined;
  attempts = 1;
  /** Bytes of it may have left in the last attempt. */
  wasSent = false;

  constructor(request: OutgoingRequest, options: SendOptions, streamed: boolean) {
    this.request = request;
    this.options = options;
    this.streamed = streamed;
  }
}

/** Sends requests of one source: pools, limits, retries, redirects and the guard around all of them. Fails with `CallError` alone. */
export class HttpTransport {
  readonly #settings: TransportSettings;
  readonly #slots: RequestSlots;
  readonly #pools: OriginPools;
  readonly #pauses = new Pauses();
  /** Those that undici still knows of. */
  readonly #exchanges = new LinkedSet<Exchange>();
  #closed: Promise<void> | undefined;

  constructor(options: CreateTransportOptions, seams: TransportSeams) {
    this.#settings = toTransportSettings(options);
    const guard = createAddressGuard(options.trusted, options.allowPrivate);
    this.#pools = new OriginPools(this.#settings, guard, seams);
    this.#slots = new RequestSlots(this.#settings);
  }

  send(request: OutgoingRequest, options: SendOptions): Promise<WholeResponse> {
    return this.#run(new Call(request, options, false)) as Promise<WholeResponse>;
  }

  /** Resolves with the head; an error status has its body read into `WholeResponse` all the same. */
  stream(request: OutgoingRequest, options: SendOptions): Promise<Response> {
    return this.#run(new Call(request, options, true));
  }

  /** Ends what is open. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  async #end(): Promise<void> {
    // Later, so that `#closed` is set before callers are told.
    await Promise.resolve();
    this.#slots.close();
    this.#pauses.close();
    for (const exchange of this.#exchanges.toArray()) exchange.close();
    await this.#pools.close();
  }

  async #run(call: Call): Promise<Response> {
    if (this.#closed !== undefined) throw closedError({ host: hostOf(call.request), attempts: 1 });
    this.#checkSize(call);
    for (;;) {
      let failure: unknown;
      let response: Response | undefined;
      try {
        response = await this.#attempt(call);
        if (!isPassing(response.status)) return response;
      } catch (error) {
        failure = error;
      }
      const delayMs = this.#delayBefore(call, response, failure);
      if (delayMs === undefined) {
        if (response === undefined) throw failure;
        return response;
      }
      await this.#pauses.wait(delayMs, call.options.signal, call);
      call.attempts += 1;
    }
  }

  #checkSize(call: Call): void {
    const { request } = call;
    const { requestBytes, urlCharacters } = this.#settings;
    call.host = this.#pools.get(request.origin).host;
    if (request.origin.length + request.path.length > urlCharacters) {
      throw tooLarge("an address longer than limits.urlCharacters allows", call);
    }
    const { body } = request;
    if (body !== undefined && Buffer.byteLength(body) > requestBytes) {
      throw tooLarge("a body larger than limits.requestBytes allows", call);
    }
  }

  /** Milliseconds until it is tried again, or nothing where it is not. */
  #delayBefore(call: Call, response: Response | undefined, failure: unknown): number | undefined {
    const { attempts, delayMs, maxDelayMs } = this.#settings;
    if (call.attempts >= attempts || this.#closed !== undefined || call.options.signal.aborted)
      return undefined;
    if (response === undefined && !mayPass(failure)) return undefined;
    if (!call.options.repeatable && call.wasSent) return undefined;
    const askedMs = response === undefined ? 0 : (toRetryAfterMs(response.headers) ?? 0);
    if (askedMs > maxDelayMs) return undefined;
    return Math.max(askedMs, backoffMs(call.attempts, delayMs, maxDelayMs));
  }

  /** Sends it once, and on where it is redirected; the slot is held until the connection is free again. */
  async #attempt(call: Call): Promise<Response> {
    if (this.#closed !== undefined) throw closedError(call);
    const waiting = this.#slots.take(call.options.signal, call);
    if (waiting !== undefined) await waiting;
    call.wasSent = false;
    const { redirects, timeoutMs, urlCharacters } = this.#settings;
    let deadline = monotonicNow() + timeoutMs;
    let { request } = call;
    let exchange: Exchange | undefined;
    try {
      for (let hops = 0; ; hops++) {
        exchange = this.#begin(call, request, deadline);
        const response = await exchange.answer;
        const location =
          response.status >= 300 && isRedirect(response.status) ? response.headers["location"] : undefined;
        if (location === undefined) return response;
        if (hops >= redirects) throw tooManyRedirects(redirects, call);
        const { status } = response;
        request = toNextHop(request, { status, location, urlCharacters }, call);
        call.wasSent = true;
        deadline += await this.#waitForHop(call);
      }
    } finally {
      call.wasSent ||= exchange?.wasSent ?? false;
      if (exchange === undefined) this.#slots.release();
      else exchange.whenLetGo(this.#slots.release);
    }
  }

  /** A redirect is one more request: it waits for its turn too, milliseconds that are nobody's fault. */
  async #waitForHop(call: Call): Promise<number> {
    const waiting = this.#slots.takeAgain(call.options.signal, call);
    if (waiting === undefined) return 0;
    const startedAt = monotonicNow();
    await waiting;
    return monotonicNow() - startedAt;
  }

  #begin(call: Call, request: OutgoingRequest, deadline: number): Exchange {
    const { signal } = call.options;
    if (this.#closed !== undefined) throw closedError(call);
    if (signal.aborted) throw abortError(signal, call);
    const { host, port, pool } = this.#pools.get(request.origin);
    call.host = host;
    call.port = port;
    const exchange = new Exchange({
      request,
      sent: { host, port, attempts: call.attempts },
      signal,
      settings: this.#settings,
      streamed: call.streamed,
      deadline,
    });
    exchange.begin(pool, this.#exchanges);
    return exchange;
  }
}

function hostOf({ origin }: OutgoingRequest): string {
  return parseUrl(origin) !== undefined ? bareHost(new URL(origin).hostname) : "The server";
}

function tooLarge(what: string, sent: Sent): Error {
  return transportError({ code: "TOO_LARGE", says: `cannot be sent ${what}` }, sent);
}

function tooManyRedirects(redirects: number, sent: Sent): Error {
  const says =
    redirects === 0
      ? "redirects, which the option redirects rules out"
      : `redirects more than ${redirects} times`;
  return transportError({ code: "OUTPUT_INVALID", says }, sent);
}

/** Not now, perhaps later: timeout, too early, too many, bad gateway, unavailable, gateway timeout. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

/** Tells whether the same request may be answered better in a moment. */
export function isPassing(status: number): boolean {
  return status >= 408 && PASSING.has(status);
}

/** Reads `Retry-After`, seconds or a date, as milliseconds from now. */
export function toRetryAfterMs(headers: ResponseHead["headers"], now = Date.now()): number | undefined {
  const header = headers["retry-after"];
  const text = (typeof header === "string" ? header : header?.[0])?.trim();
  if (text === undefined || text === "") return undefined;
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const date = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Waits that a signal or the end of their transport cuts short. */
class Pauses {
  readonly #open = new Set<Pause>();

  async wait(ms: number, signal: AbortSignal, sent: Sent): Promise<void> {
    if (signal.aborted) throw abortError(signal, sent);
    const pause = new Pause(ms, signal, sent);
    this.#open.add(pause);
    try {
      await pause.over;
    } finally {
      this.#open.delete(pause);
    }
  }

  close(): void {
    for (const pause of this.#open) pause.fail(closedError(pause.sent));
  }
}

class Pause implements AbortListener {
  readonly over: Promise<void>;
  readonly sent: Sent;
  readonly #signal: AbortSignal;
  readonly #timer: ReturnType<typeof setTimeout>;
  #resolve!: () => void;
  #reject!: (error: Error) => void;

  constructor(ms: number, signal: AbortSignal, sent: Sent) {
    this.sent = sent;
    this.#signal = signal;
    this.over = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    addAbortListener(signal, this);
    this.#timer = setTimeout(
      () => {
        removeAbortListener(signal, this);
        this.#resolve();
      },
      Math.min(ms, LONGEST_DELAY),
    );
  }

  onAbort(signal: AbortSignal): void {
    this.fail(abortError(signal, this.sent));
  }

  fail(error: Error): void {
    clearTimeout(this.#timer);
    removeAbortListener(this.#signal, this);
    this.#reject(error);
  }
}
