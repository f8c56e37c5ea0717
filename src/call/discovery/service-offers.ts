import type { AccessRule } from "../../core/access/access.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { type EntrySettings, OperationEntry } from "../../core/registry/operation-entry.ts";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import type { CallLimits } from "../call-options.ts";
import { namespaceOf } from "./operation-id.ts";
import type { ReadingSteps } from "./service-directory.ts";
import {
  type OperationNotice,
  type ReadNotice,
  readOperationNotice,
  reasonOf,
  type ServiceHeader,
  type UnusableNotice,
} from "./service-notice.ts";

/** Something a service offers that cannot be used, or all of it where there is no id. */
export interface UnusableOffer {
  readonly serviceId: string;
  readonly id?: string;
  readonly reason: string;
}

/** Unusable operations of one service that are listed by name; the rest are counted. */
export const LISTED_PROBLEMS = 100;

/** What is known of one service. */
export interface ServiceOffers {
  readonly serviceId: string;
  readonly name: string;
  readonly usable: ReadonlyMap<string, UsableSpec>;
  /** Its shares in the pool, those in unusable specs too. */
  readonly shares: readonly PooledSpec[];
  readonly problems: readonly UnusableOffer[];
  /** False when a limit kept something from being looked at. */
  readonly complete: boolean;
}

/** What reading needs to know beside the service. */
export interface OfferSettings {
  readonly limits: CallLimits;
  /** Only these; all when absent. */
  readonly namespaces: ReadonlySet<string> | undefined;
  readonly pool: SpecPool;
}

/** Takes a share in everything a service offers; what is wrong with one operation says nothing about the others. */
export function shareOffers(
  header: ServiceHeader,
  offers: readonly PreparedOffer[],
  settings: OfferSettings,
): ServiceOffers {
  const sharing = new OfferSharing(header.serviceId, settings);
  const { operations } = settings.limits;
  if (header.reason !== undefined) sharing.refuse(undefined, header.reason);
  for (const offer of offers) {
    if (offer.usable) sharing.share(offer.spec);
    else sharing.refuse(offer.id, offer.reason);
  }
  if (header.operations.length > operations) {
    sharing.overLimit(undefined, `It offers more than ${operations} operations; the rest is ignored.`);
  }
  return sharing.finish(header.name);
}

class OfferSharing {
  readonly #serviceId: string;
  readonly #settings: OfferSettings;
  readonly #usable = new Map<string, UsableSpec>();
  readonly #shares: PooledSpec[] = [];
  readonly #problems: UnusableOffer[] = [];
  #unlisted = 0;
  #complete = true;

  constructor(serviceId: string, settings: OfferSettings) {
    this.#serviceId = serviceId;
    this.#settings = settings;
  }

  refuse(id: string | undefined, reason: string): void {
    if (this.#problems.length >= LISTED_PROBLEMS) this.#unlisted++;
    else this.#problems.push({ serviceId: this.#serviceId, ...(id !== undefined && { id }), reason });
  }

  overLimit(id: string | undefined, reason: string): void {
    this.#complete = false;
    this.refuse(id, reason);
  }

  share(offered: PooledSpec): void {
    const { pool, limits } = this.#settings;
    const spec = pool.take(offered);
    if (spec === undefined) {
      const reason = `There are ${limits.operations} different operations already; it is ignored.`;
      this.overLimit(offered.id, reason);
      return;
    }
    this.#shares.push(spec);
    if (isUsable(spec)) this.#usable.set(spec.id, spec);
    else this.refuse(spec.id, spec.reason ?? "");
  }

  finish(name: string): ServiceOffers {
    const [serviceId, unlisted] = [this.#serviceId, this.#unlisted];
    const more =
      unlisted === 0 ? [] : [{ serviceId, reason: `${unlisted} more of its offers are unusable.` }];
    return {
      serviceId,
      name,
      usable: this.#usable,
      shares: this.#shares,
      problems: [...this.#problems, ...more],
      complete: this.#complete,
    };
  }
}

/** One operation of a service, looked at all the way; its spec may still be unusable. */
export type PreparedOffer = { readonly usable: true; readonly spec: PooledSpec } | UnusableNotice;

/** Looks at everything a service offers, as far as limits allow, and takes no share in anything yet. */
export function* prepareOffers(
  header: ServiceHeader,
  settings: OfferSettings,
): ReadingSteps<PreparedOffer[]> {
  const { limits, namespaces } = settings;
  const offers: PreparedOffer[] = [];
  const usableIds = new Set<string>();
  for (let i = 0; i < Math.min(header.operations.length, limits.operations); i++) {
    const read = readOperationNotice(itemAt(header.operations, i));
    const isWanted = read.id === undefined || namespaces?.has(namespaceOf(read.id)) !== false;
    if (isWanted) offers.push(read.usable ? yield* prepare(read, usableIds, settings) : read);
    yield;
  }
  return offers;
}

function* prepare(
  read: ReadNotice,
  usableIds: Set<string>,
  { pool }: OfferSettings,
): ReadingSteps<PreparedOffer> {
  const { id } = read;
  if (usableIds.has(id)) {
    return { usable: false, id, reason: "The service offers this id twice; the first counts." };
  }
  const spec = yield* pool.vet(read);
  if (isUsable(spec)) usableIds.add(id);
  return { usable: true, spec };
}

function itemAt(list: readonly unknown[], index: number): unknown {
  try {
    return list[index];
  } catch {
    return undefined;
  }
}

/** One spec, shared by all services that offer exactly it. */
interface PooledSpec {
  readonly id: string;
  readonly version: string;
  readonly text: string;
  /** Absent when the spec is unusable. */
  readonly operation: AnyOperation | undefined;
  readonly access: AccessRule | undefined;
  /** Why it is unusable; absent when it is not. */
  readonly reason: string | undefined;
}

/** A spec that can be called. */
export interface UsableSpec extends PooledSpec {
  readonly operation: AnyOperation;
}

interface Slot {
  readonly spec: PooledSpec;
  users: number;
}

/** Tells whether a spec can be called. */
export function isUsable(spec: PooledSpec): spec is UsableSpec {
  return spec.operation !== undefined;
}

/** Specs by their text, vetted once for however many services offer them. */
export class SpecPool {
  readonly #slots = new Map<string, Slot>();
  readonly #limit: number;
  readonly #handlerFor: (notice: OperationNotice) => AnyOperation["handler"];
  readonly #unused = new Set<Slot>();

  constructor(limit: number, handlerFor: (notice: OperationNotice) => AnyOperation["handler"]) {
    this.#limit = limit;
    this.#handlerFor = handlerFor;
  }

  /** Specs in use. */
  get size(): number {
    return this.#slots.size - this.#unused.size;
  }

  /** Makes a spec of what was read, the one that is here already if there is one; nobody has a share in it yet. */
  *vet({ id, notice, text }: ReadNotice): ReadingSteps<PooledSpec> {
    const known = this.#slots.get(text);
    if (known !== undefined) return known.spec;
    const { version } = notice;
    try {
      const { operation, access } = yield* vetNotice(notice, this.#handlerFor(notice));
      return { id, version, text, operation, access, reason: undefined };
    } catch (thrown) {
      return { id, version, text, operation: undefined, access: undefined, reason: reasonOf(thrown) };
    }
  }

  /** Takes a share in a spec, or in the equal one that is here already; nothing when it would be one too many. */
  take(spec: PooledSpec): PooledSpec | undefined {
    const known = this.#slots.get(spec.text);
    if ((known === undefined || known.users === 0) && this.size >= this.#limit) return undefined;
    const slot = known ?? { spec, users: 0 };
    if (known === undefined) this.#slots.set(spec.text, slot);
    slot.users++;
    this.#unused.delete(slot);
    return slot.spec;
  }

  /** Gives a share back; a spec that nobody uses is still there until `sweep`, in case it is taken again. */
  release({ text }: PooledSpec): void {
    const slot = this.#slots.get(text);
    if (slot !== undefined && --slot.users === 0) this.#unused.add(slot);
  }

  /** Forgets what nobody uses. */
  sweep(): void {
    for (const { spec } of this.#unused) this.#slots.delete(spec.text);
    this.#unused.clear();
  }
}

/** An operation made from a notice, and who may call it. */
interface NoticedOperation {
  readonly operation: AnyOperation;
  readonly access: AccessRule | undefined;
}

/** Compiled only to be vetted: most of what is out there is never called from here. */
const VETTING = { codegen: false };

/**
 * Makes the operation a notice describes, one schema a step; throws a `TypeError` for what could not be registered here
 * either.
 */
function* vetNotice(
  notice: OperationNotice,
  handler: AnyOperation["handler"],
): ReadingSteps<NoticedOperation> {
  const { title, description } = notice;
  const operation = defineOperation({
    ...notice,
    ...(title !== undefined && { title: cleanText(title).text }),
    description: cleanText(description).text,
    source: "call",
    handler,
  });
  // A key of its own, so that nothing compiled outlives the vetting.
  const options = { ...VETTING };
  const settings: EntrySettings = {
    outputPolicy: "off",
    compile: (schema, direction) => toOperationSchema(schema, direction, options),
    warn: () => {},
  };
  for (const [schema, direction] of schemasOf(notice)) {
    if (!isAccepted(schema, direction, settings)) break;
    yield;
  }
  // It finds compiled what was compiled above, and says what is wrong with the one that was not.
  const { access } = new OperationEntry(operation, settings);
  return { operation, access };
}

/** In the order an entry looks at them. */
function* schemasOf({ inputSchema, outputSchema, errors = [] }: OperationNotice) {
  yield [inputSchema, "input"] as const;
  yield [outputSchema, "output"] as const;
  for (const { schema } of errors) yield [schema, "output"] as const;
}

function isAccepted(
  schema: AnySchema | undefined,
  direction: SchemaDirection,
  { compile }: EntrySettings,
): boolean {
  try {
    if (schema !== undefined) compile(schema, direction);
    return true;
  } catch {
    return false;
  }
}
