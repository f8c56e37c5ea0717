import type { Steps } from "./offer-reader.ts";
import { namespaceOf } from "./operation-id.ts";
import { type ReadNotice, readOperationNotice, type UnusableNotice } from "./read-operation-notice.ts";
import type { ServiceHeader } from "./read-service.ts";
import type { OfferSettings } from "./service-offers.ts";
import { isUsable, type PooledSpec } from "./spec-pool.ts";

/** One operation of a service, looked at all the way; its spec may still be unusable. */
export type PreparedOffer = { readonly usable: true; readonly spec: PooledSpec } | UnusableNotice;

/** Looks at everything a service offers, as far as limits allow, and takes no share in anything yet. */
export function* prepareOffers(header: ServiceHeader, settings: OfferSettings): Steps<PreparedOffer[]> {
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

function* prepare(read: ReadNotice, usableIds: Set<string>, { pool }: OfferSettings): Steps<PreparedOffer> {
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
