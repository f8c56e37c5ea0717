import type { Identity } from "../../../core/access/identity.ts";
import type { Delivery } from "../../bus.ts";
import { type CallLimits, readLimits } from "../../call-limits.ts";
import type { CredentialSource } from "../../call-options.ts";

/**
 * Reads who asks from a stored request; nothing for an anonymous caller. `at` is when the broker stored it: a token that was
 * good then may have expired by the time it runs. A thrown `CallError` that is retryable lets the request be delivered again;
 * anything else thrown ends the call as not authenticated.
 */
export type AuthenticateStored = (
  delivery: Delivery,
  at: Date,
) => Identity | undefined | Promise<Identity | undefined>;

/** What both sides of durable calls have to agree on. */
export interface DurableOptions {
  /** First token of every subject, and in capitals of both streams. @default "waybill" */
  readonly prefix?: string | undefined;
  /** Milliseconds that requests and results are kept. @default 24 hours */
  readonly keepMs?: number | undefined;
  /** Milliseconds in which an idempotency key stands for the same call; at most `keepMs`. @default 2 hours, or `keepMs` */
  readonly duplicateWindowMs?: number | undefined;
  /** Where the broker keeps requests and results; memory does not survive its restart. @default "file" */
  readonly storage?: "file" | "memory" | undefined;
  /** Copies in a cluster of brokers, 1 to 5. @default 1 */
  readonly replicas?: number | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
}

/** How durable calls are asked for. */
export interface DurableCallsOptions extends DurableOptions {
  /** The user that the broker's permissions bind this side to. @default "_" */
  readonly user?: string | undefined;
  /** Makes the signed token that says who is asking. */
  readonly credentials?: CredentialSource | undefined;
}

/** How durable calls are answered. */
export interface DurableWorkerOptions extends DurableOptions {
  /** @default everybody is anonymous */
  readonly authenticate?: AuthenticateStored | undefined;
  /**
   * Milliseconds without a sign of life after which a request is delivered to another worker; the same for all workers of an
   * operation. @default 30 seconds
   */
  readonly ackWaitMs?: number | undefined;
  /** Deliveries of one request, the last of which only stores that it was given up. @default 10 */
  readonly maxDeliver?: number | undefined;
  /** Requests of one operation that run here at a time. @default 16 */
  readonly concurrency?: number | undefined;
}

/** The shared options with their defaults filled in. */
export interface DurableSettings {
  readonly prefix: string;
  readonly keepMs: number;
  readonly duplicateWindowMs: number;
  readonly storage: "file" | "memory";
  readonly replicas: number;
  readonly limits: CallLimits;
}

const HOUR_MS = 3_600_000;
/** The broker takes no shorter times. */
const SHORTEST_MS = 100;
const LONGEST_MS = 10 * 365 * 24 * HOUR_MS;
const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** Fills in the defaults; a `TypeError` names the option that makes no sense. */
export function readDurableOptions(options: DurableOptions = {}): DurableSettings {
  const { prefix = "waybill", keepMs = 24 * HOUR_MS, storage = "file", replicas = 1 } = options;
  assertToken("prefix", prefix);
  assertWhole("keepMs", keepMs, SHORTEST_MS, LONGEST_MS);
  const { duplicateWindowMs = Math.min(2 * HOUR_MS, keepMs) } = options;
  assertWhole("duplicateWindowMs", duplicateWindowMs, SHORTEST_MS, keepMs);
  assertWhole("replicas", replicas, 1, 5);
  if (storage !== "file" && storage !== "memory") throw new TypeError('storage must be "file" or "memory".');
  return { prefix, keepMs, duplicateWindowMs, storage, replicas, limits: readLimits(options.limits) };
}

/** Throws unless the text can be one token of a subject and part of a name. */
export function assertToken(name: string, value: unknown): asserts value is string {
  if (typeof value === "string" && TOKEN.test(value)) return;
  throw new TypeError(`${name} must be 1 to 64 letters, digits, "_" or "-".`);
}

/** Throws unless a number is whole and within its bounds. */
export function assertWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new TypeError(`${name} must be a whole number from ${least} to ${most}.`);
}
