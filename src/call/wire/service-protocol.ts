import { monotonicNow } from "../../core/execution/cancellation.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { OperationStats, ServiceFacts } from "../bus.ts";
import type { LiveCounters } from "../call-observer.ts";
import type { OperationNotice, ServiceNotice } from "../discovery/service-notice.ts";
import { QUEUE, type Subjects } from "./subjects.ts";
import type { Transport, TransportMessage } from "./transport.ts";
import { toBytes } from "./wire-message.ts";

/** What a service tells of itself by the service protocol of NATS, and how often. */
export const SERVICE_LIMITS = {
  /** Operations in one answer. */
  endpoints: 1_000,
  /** Bytes of one answer; less where the broker carries less. */
  answerBytes: 524_288,
  /** Answers of one service in a second; further questions are not answered. */
  answersPerSecond: 100,
} as const;

/** Bytes of an answer that are kept for what is said of the service itself. */
const HEAD_BYTES = 2_048;

const NANOSECONDS = 1e6;

const VERBS = ["PING", "INFO", "STATS"] as const;
type Verb = (typeof VERBS)[number];

/** What the protocol works with. */
interface ServiceProtocolHost {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly counters: LiveCounters;
}

/** A service as the service protocol of NATS describes one, so that its tools see it. */
export class DescribedService {
  readonly #host: ServiceProtocolHost;
  readonly #facts: ServiceFacts | undefined;
  readonly #startedAt = new Date().toISOString();
  readonly #stops: (() => void)[] = [];
  #notice: ServiceNotice;
  #secondBeganAt = Number.NEGATIVE_INFINITY;
  #answersInSecond = 0;

  /** `prefix` is what the subjects of the protocol begin with. */
  constructor(
    host: ServiceProtocolHost,
    prefix: string,
    { notice, facts }: { readonly notice: ServiceNotice; readonly facts: ServiceFacts | undefined },
  ) {
    this.#host = host;
    this.#notice = notice;
    this.#facts = facts;
    const name = protocolName(notice.name);
    for (const verb of VERBS) {
      for (const place of ["", `.${name}`, `.${name}.${notice.serviceId}`]) {
        const subject = `${prefix}.${verb}${place}`;
        this.#stops.push(host.transport.subscribe(subject, (message) => this.#hear(verb, message)).stop);
      }
    }
  }

  update(notice: ServiceNotice): void {
    this.#notice = notice;
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  #hear(verb: Verb, { replyTo }: TransportMessage): void {
    const { transport, subjects, counters } = this.#host;
    // The caller says where to answer: nothing that others would take for a message of the bus.
    if (replyTo === undefined || subjects.isOwn(replyTo)) counters.malformed++;
    else if (!this.#mayAnswer()) counters.overLimit++;
    else {
      const bytes = toBytes(JSON.stringify(this.#answer(verb)));
      if (bytes.length <= transport.maxMessageBytes) transport.publish(replyTo, bytes);
      else counters.oversized++;
    }
  }

  #mayAnswer(): boolean {
    const now = monotonicNow();
    if (now - this.#secondBeganAt >= 1_000) {
      this.#secondBeganAt = now;
      this.#answersInSecond = 0;
    }
    return ++this.#answersInSecond <= SERVICE_LIMITS.answersPerSecond;
  }

  #answer(verb: Verb): object {
    const { serviceId: id, name, operations } = this.#notice;
    const head = { name: protocolName(name), id, version: PACKAGE_VERSION };
    const type = `io.nats.micro.v1.${verb.toLowerCase()}_response`;
    if (verb === "PING") return { ...head, metadata: this.#metadata(), type };
    const describe =
      verb === "INFO"
        ? (operation: OperationNotice) => this.#toEndpoint(operation)
        : (operation: OperationNotice) => this.#toStats(operation);
    const endpoints = fitting(operations, describe, this.#host.transport.maxMessageBytes);
    const metadata = this.#metadata(endpoints.length);
    return verb === "INFO"
      ? { ...head, description: name, metadata, endpoints, type }
      : { ...head, metadata, started: this.#startedAt, endpoints, type };
  }

  /** Says how many operations there are, where an answer does not hold all. */
  #metadata(shown?: number): Readonly<Record<string, string>> {
    const count = this.#notice.operations.length;
    return {
      framework: "waybill",
      operations: String(count),
      ...(shown !== undefined && shown < count && { "operations-shown": String(shown) }),
    };
  }

  #toEndpoint({ namespace, name, version, type }: OperationNotice): object {
    return {
      ...this.#place(`${namespace}.${name}`),
      metadata: { operation: `${namespace}.${name}`, version, type },
    };
  }

  #toStats({ namespace, name, type }: OperationNotice): object {
    const id = `${namespace}.${name}`;
    const { calls, errors, busyMs, lastError = "" } = this.#facts?.statsOf(id) ?? NO_STATS;
    // How long somebody listened to a subscription says nothing about it.
    const nanoseconds = type === "subscription" ? 0 : Math.round(busyMs * NANOSECONDS);
    return {
      ...this.#place(id),
      num_requests: calls,
      num_errors: errors,
      last_error: lastError,
      processing_time: nanoseconds,
      average_processing_time: calls === 0 ? 0 : Math.round(nanoseconds / calls),
    };
  }

  #place(operationId: string): object {
    const subject = this.#host.subjects.route("call", { operationId });
    return { name: protocolName(operationId), subject, queue_group: QUEUE };
  }
}

const NO_STATS: OperationStats = { calls: 0, errors: 0, busyMs: 0 };

/** Names of services and endpoints hold letters, digits, "_" and "-". */
function protocolName(name: string): string {
  return name.replace(/[^\w-]/g, "_") || "_";
}

/** Describes operations, as many as fit into one answer. */
function fitting(
  operations: readonly OperationNotice[],
  describe: (operation: OperationNotice) => object,
  maxMessageBytes: number,
): object[] {
  const described: object[] = [];
  let room = Math.min(SERVICE_LIMITS.answerBytes, maxMessageBytes) - HEAD_BYTES;
  for (const operation of operations) {
    if (described.length >= SERVICE_LIMITS.endpoints) break;
    const one = describe(operation);
    room -= toBytes(JSON.stringify(one)).length + 1;
    if (room < 0) break;
    described.push(one);
  }
  return described;
}
