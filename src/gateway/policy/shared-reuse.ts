import { createHash } from "node:crypto";
import { ownerOf } from "../../core/access/identity.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { callerDigest } from "../../http/caller.ts";
import type { GuardPolicy } from "../guard/result-guard.ts";
import { inputText } from "./call-reuse.ts";

/** What a call asks for, by a name that is the same at every replica. */
export interface ReuseKey {
  /** Whose call it is. */
  readonly owner: string;
  readonly key: string;
}

/** A result that was kept, written as text. */
export interface SharedText {
  readonly text: string;
  readonly ageMs: number;
}

/** How long and how much is kept. */
export interface ReuseLimits {
  readonly keepMs: number;
  readonly entries: number;
  readonly characters: number;
  /** The part of all that one caller may have. */
  readonly share: number;
}

/**
 * What is to be done for a call that other replicas may run too: it runs and they wait until it is ended, with its result or without; it has
 * the result of the run it waited for; or it runs without a word to them.
 */
export type SharedFlight =
  | { readonly state: "leading"; end(text: string | undefined): void }
  | { readonly state: "landed"; readonly text: string }
  | { readonly state: "alone" };

/** Results and runs that replicas share. None of it fails a call. */
export interface SharedReuse {
  get(key: ReuseKey, maxAgeMs: number): Promise<SharedText | undefined>;
  /** Keeps a result, some time soon. */
  set(key: ReuseKey, text: string, limits: ReuseLimits): void;
  join(key: ReuseKey, signal: AbortSignal): Promise<SharedFlight>;
}

/** What tells a call from others. */
interface SharedCall {
  readonly operation: AnyOperation;
  readonly context: OperationContext;
  readonly input: unknown;
  /** As whom the source is asked. */
  readonly as?: string | undefined;
  /** What the operation was made from, where replicas with another config may have it from elsewhere. */
  readonly origin?: string | undefined;
  /** What is looked for in the result, which replicas with another config may not know. */
  readonly guard?: GuardPolicy | undefined;
}

/** Names a call among those of all replicas: the operation as it is defined, the caller with all they may do, the input. */
export function reuseKey({
  operation,
  context,
  input,
  as = "",
  origin = "",
  guard,
}: SharedCall): ReuseKey | undefined {
  const text = inputText(input);
  if (text === undefined) return undefined;
  const { identity } = context;
  const parts = [
    definitionOf(operation),
    origin,
    guard ? digestOf(guard) : "",
    callerDigest(identity),
    as,
    text,
  ];
  return { owner: ownerOf(identity), key: JSON.stringify([operation.id, ...parts]) };
}

const DIGESTS = new WeakMap<object, string>();

function definitionOf(operation: AnyOperation): string {
  const known = DIGESTS.get(operation);
  if (known !== undefined) return known;
  const { id, version, type, inputSchema, outputSchema } = operation;
  const digest = hash([id, version, type, inputSchema, outputSchema]);
  DIGESTS.set(operation, digest);
  return digest;
}

function digestOf(guard: GuardPolicy): string {
  const digest = DIGESTS.get(guard) ?? hash(guard);
  DIGESTS.set(guard, digest);
  return digest;
}

function hash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("base64url");
}
