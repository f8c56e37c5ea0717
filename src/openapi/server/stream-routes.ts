import type { CallError } from "../../core/errors/errors.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { AuthenticatedRequest, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import type { Negotiation } from "./accept.ts";
import { accessRefusal } from "./access-first.ts";
import type { GenericCall } from "./batch.ts";
import type { CallRunner } from "./call-runner.ts";
import { EventStreams, type EventStreamsOptions, headOfStream } from "./event-streams.ts";
import { readQuery } from "./input-place.ts";
import { readPatience } from "./patience.ts";
import type { PostedBodies } from "./posted-bodies.ts";
import { readReserved } from "./reserved-query.ts";
import type { Route } from "./route-table.ts";

/** What subscriptions of an API are answered with. */
export interface StreamRoutesOptions extends EventStreamsOptions {
  readonly negotiation: Negotiation;
  readonly runner: Pick<CallRunner, "metadata">;
  readonly bodies: PostedBodies;
}

/** Everything an API serves as a stream of events. */
export class StreamRoutes {
  readonly #executor: Executor;
  readonly #options: StreamRoutesOptions;
  readonly #streams: EventStreams;

  constructor(options: StreamRoutesOptions) {
    this.#executor = options.executor;
    this.#options = options;
    this.#streams = new EventStreams(options);
  }

  /** Ends all subscriptions; whoever reads is told why. */
  end(error: CallError): void {
    this.#streams.end(error);
  }

  /** Ends the subscriptions of callers who are not let in any more. */
  recheck(): void {
    this.#streams.recheck();
  }

  /** Forgets all of them. */
  drop(): void {
    this.#streams.drop();
  }

  /** Answers a request for the address of a subscription. */
  async answer(route: Route, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { request } = caller;
    const { id } = route.operation;
    const { rest, lastEventId } = readReserved(request.query);
    this.#options.negotiation.checkEvents(request.header("accept"));
    if (request.method === "HEAD") {
      const refusal = accessRefusal(this.#executor, route.operation, caller.identity);
      if (refusal !== undefined) throw refusal;
      return headOfStream(id);
    }
    const last = lastEventOf(request, lastEventId);
    if (last !== "") return this.#streams.resume(id, last, caller);
    if (route.place.place === "body") {
      const { value } = await this.#options.bodies.read(caller);
      return this.#start({ operationId: id, input: value }, caller);
    }
    const { input } = readQuery(rest, route.place.parameters);
    return this.#start({ operationId: id, input }, caller);
  }

  /** Answers a subscription that is called like anything else. */
  async answerCall(call: GenericCall, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { request } = caller;
    this.#options.negotiation.checkEvents(request.header("accept"));
    const last = lastEventOf(request, readReserved(request.query).lastEventId);
    if (last !== "") return this.#streams.resume(call.operationId, last, caller);
    return this.#start(call, caller);
  }

  #start(call: GenericCall, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { timeoutMs: ownMs = Number.POSITIVE_INFINITY } = call;
    const patience = Math.min(readPatience(caller.request, ownMs), ownMs);
    const timeoutMs = Number.isFinite(patience) ? patience : undefined;
    const metadata = this.#options.runner.metadata(caller);
    return this.#streams.start(call, caller, {
      metadata,
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  }
}

function lastEventOf(request: HttpRequest, inQuery: string | undefined): string {
  return request.header("last-event-id") ?? inQuery ?? "";
}
