import { monotonicNow } from "../../../core/execution/deadline.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import type {
  OutgoingRequest,
  SendOptions,
  StreamedResponse,
  Transport,
  WholeResponse,
} from "../http-message.ts";
import { bareHost, createAddressGuard } from "./address-guard.ts";
import { checkTransportOptions } from "./check-transport-options.ts";
import { Exchange } from "./exchange.ts";
import { OriginPools, type TransportSeams } from "./origin-pools.ts";
import { isRedirect, toNextHop } from "./redirects.ts";
import { RequestSlots } from "./request-slots.ts";
import { isPassing, Pauses, RetryDelays, toRetryAfterMs } from "./retry-delays.ts";
import { abortError, closedError, mayPass, type Sent, transportError } from "./transport-errors.ts";
import {
  type CreateTransportOptions,
  type TransportSettings,
  toTransportSettings,
} from "./transport-settings.ts";

type Response = WholeResponse | StreamedResponse;

/** Creates the transport of one source; throws a `TypeError` for options that cannot work. */
export function createTransport(options: CreateTransportOptions, seams: TransportSeams = {}): Transport {
  checkTransportOptions(options);
  return new PooledTransport(options, seams);
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
  delays: RetryDelays | undefined;

  constructor(request: OutgoingRequest, options: SendOptions, streamed: boolean) {
    this.request = request;
    this.options = options;
    this.streamed = streamed;
  }
}

class PooledTransport implements Transport {
  readonly #settings: TransportSettings;
  readonly #slots: RequestSlots;
  readonly #pools: OriginPools;
  readonly #pauses = new Pauses();
  /** Those that undici still knows of. */
  readonly #exchanges = new Set<Exchange>();
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

  stream(request: OutgoingRequest, options: SendOptions): Promise<Response> {
    return this.#run(new Call(request, options, true));
  }

  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  async #end(): Promise<void> {
    // Later, so that `#closed` is there for whoever is told.
    await Promise.resolve();
    this.#slots.close();
    this.#pauses.close();
    for (const exchange of [...this.#exchanges]) exchange.close();
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
    call.delays ??= new RetryDelays(delayMs, maxDelayMs);
    return Math.max(askedMs, call.delays.next());
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
        const location = isRedirect(response.status) ? response.headers["location"] : undefined;
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
