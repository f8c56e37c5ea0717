import { getEventListeners } from "node:events";
import { vi } from "vitest";
import {
  type Bus,
  CallHandler,
  type CallObservation,
  CallObservers,
  PendingRequestMap,
} from "../../src/call/index.ts";
import { isCallError, type ResponseEnvelope } from "../../src/index.ts";
import { AnsweringModel } from "./answering-model.ts";
import { AskingModel, LIMITS } from "./asking-model.ts";
import { type ControlledRun, controlledRegistry, OPERATIONS } from "./controlled-runs.ts";
import type { CallPlan, Outcome } from "./model-call.ts";
import type { Network } from "./network.ts";
import { around, watchAnswering, watchAsking } from "./watched-bus.ts";

/** A defect put between a side and its bus on purpose, where the model does not see it. */
export interface Plant {
  readonly asking?: (bus: Bus) => Bus;
  readonly answering?: (bus: Bus) => Bus;
}

/** What really came of a call: once, if all is well. */
export interface RealCall {
  readonly settlements: Outcome[];
  progress: number;
}

/** What a reader really got. */
export interface RealStream {
  readonly iterator: AsyncIterableIterator<ResponseEnvelope, undefined>;
  readonly reads: (Outcome | undefined)[];
  progress: number;
}

/** One answering side. */
export interface RealService {
  readonly number: number;
  readonly handler: CallHandler;
}

/** Milliseconds; deadlines, pauses and steps of time all fall on it, so that the model need not know how timers are shared. */
export const GRID_MS = 10;
/** Milliseconds a service that leaves gives its calls. */
export const DRAIN_MS = 100;
const SIGNALS = 3;

/** The real system and the model of it, side by side. */
export class World {
  readonly asking = new AskingModel();
  readonly answering = new AnsweringModel();
  readonly runs: ControlledRun[] = [];
  readonly maps: PendingRequestMap[] = [];
  readonly services: RealService[] = [];
  readonly calls: RealCall[] = [];
  readonly streams: RealStream[] = [];
  readonly controllers: AbortController[] = [];
  readonly slots: number[] = [];
  readonly network: Network;
  /** What both ends reported. */
  readonly observed: CallObservation[] = [];
  /** Commands that were run. */
  steps = 0;
  readonly #plant: Plant;
  readonly #observers = new CallObservers();
  readonly #leaving: Promise<void>[] = [];

  constructor(network: Network, plant: Plant = {}) {
    this.network = network;
    this.#plant = plant;
    this.#observers.add((call) => void this.observed.push(call));
    this.asking.now = this.answering.now = performance.now();
    for (let slot = 0; slot < SIGNALS; slot++) this.renewSignal(slot);
    this.#makeMap();
  }

  get map(): PendingRequestMap {
    return this.maps.at(-1) as PendingRequestMap;
  }

  get alive(): readonly RealService[] {
    return this.services.filter(({ number }) => this.answering.services[number]?.isLeaving === false);
  }

  renewSignal(slot: number): void {
    this.slots[slot] = this.controllers.push(new AbortController()) - 1;
  }

  async join(): Promise<void> {
    const number = this.answering.join();
    const watched = watchAnswering(this.network.answeringBus(number), this.answering, number);
    const bus = this.#observe(this.#plant.answering?.(watched) ?? watched);
    const options = { announce: false, limits: LIMITS };
    const handler = new CallHandler(controlledRegistry(number, this.runs), bus, options);
    this.services.push({ number, handler });
    const started = handler.start();
    await this.settle();
    await started;
  }

  /** Leaves in order, or is gone at once. */
  leave({ number, handler }: RealService, timeoutMs: number): void {
    const service = this.answering.services[number];
    if (service === undefined) return;
    service.isLeaving = true;
    this.network.left();
    service.drainAt = this.answering.now + timeoutMs;
    const drained = handler.drain({ timeoutMs }).then(() => {
      service.isDrained = true;
    });
    this.#leaving.push(drained);
  }

  call(operationId: string, plan: CallPlan, requestId: string | undefined): void {
    const { timeoutMs, attempts, attemptTimeoutMs, signal, input } = plan;
    const real: RealCall = { settlements: [], progress: 0 };
    const isTaken = this.asking.named.some((other) => other.requestId === requestId);
    const { phase } = this.asking.call(plan, operationId === OPERATIONS.again, isTaken);
    this.calls.push(real);
    const settled = (outcome: Outcome) => void real.settlements.push(outcome);
    const options = {
      timeoutMs,
      requestId,
      ...(signal !== undefined && { signal: (this.controllers[signal] as AbortController).signal }),
      ...(attempts > 1 && { retry: { attempts, attemptTimeoutMs } }),
      onProgress: () => void real.progress++,
    };
    this.map.call(operationId, input, options).then(
      (envelope) => settled(toValue(envelope)),
      (thrown) => settled(toFailure(thrown)),
    );
    if (phase === "starting") this.asking.started();
  }

  subscribe(timeoutMs: number | undefined, signal: number | undefined): void {
    this.asking.subscribe(timeoutMs, signal);
    const options = {
      timeoutMs,
      ...(signal !== undefined && { signal: (this.controllers[signal] as AbortController).signal }),
      onProgress: () => void real.progress++,
    };
    const iterator = this.map.subscribe(OPERATIONS.many, undefined, options);
    const real: RealStream = { iterator, reads: [], progress: 0 };
    this.streams.push(real);
  }

  read(index: number): void {
    const real = this.streams[index] as RealStream;
    const expected = this.asking.streams[index];
    if (expected === undefined) return;
    const isFirst = expected.phase === "not started";
    this.asking.read(expected);
    const isAsking = isFirst && expected.phase === "open";
    const at = real.reads.push(undefined) - 1;
    const got = (outcome: Outcome) => {
      if (real.reads[at] !== undefined) this.asking.problems.push("a step was answered twice");
      real.reads[at] = outcome;
    };
    real.iterator.next().then(
      (step) => got(step.done === true ? "done" : toValue(step.value)),
      (thrown) => got(toFailure(thrown)),
    );
    if (isAsking) this.asking.started();
  }

  /** Closes the asking side, and makes another one unless this is the end. */
  async closeMap(isLast = false): Promise<void> {
    const closing = this.map;
    this.asking.close();
    const closed = closing.close();
    if (!isLast) this.#makeMap();
    await closed;
  }

  async advance(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += GRID_MS) {
      this.asking.now += GRID_MS;
      this.answering.now += GRID_MS;
      vi.advanceTimersByTime(GRID_MS);
      this.asking.expireDue();
      await this.settle();
    }
  }

  /** Until nothing moves any more. */
  async settle(): Promise<void> {
    do {
      await turn();
      vi.advanceTimersByTime(0);
      await turn();
      this.answering.link(this.runs);
    } while (this.network.deliverOne());
  }

  /** Ends everything in order; resolves once all of it has left. */
  async end(): Promise<void> {
    await this.closeMap(true);
    await this.settle();
    for (const service of this.alive) this.leave(service, DRAIN_MS);
    await this.settle();
    await this.advance(DRAIN_MS + GRID_MS);
    await Promise.all(this.#leaving);
    await this.network.close();
    await this.settle();
  }

  listeners(signal: number): number {
    return getEventListeners((this.controllers[signal] as AbortController).signal, "abort").length;
  }

  #makeMap(): void {
    const watched = watchAsking(this.network.askingBus(), this.asking);
    const bus = this.#observe(this.#plant.asking?.(watched) ?? watched);
    this.maps.push(new PendingRequestMap(bus, { limits: LIMITS }));
  }

  #observe(bus: Bus): Bus {
    return around(bus, { observers: this.#observers });
  }
}

/** Lets all promises go on; the clock is not the real one, but this is. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function toValue(envelope: ResponseEnvelope): Outcome {
  return { data: envelope.data, isError: envelope.meta.isError === true };
}

function toFailure(thrown: unknown): Outcome {
  return { code: isCallError(thrown) ? thrown.code : `not a CallError: ${String(thrown)}` };
}
