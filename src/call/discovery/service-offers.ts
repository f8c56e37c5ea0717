import type { CallLimits } from "../call-limits.ts";
import type { PreparedOffer } from "./prepare-offers.ts";
import type { ServiceHeader } from "./read-service.ts";
import { isUsable, type PooledSpec, type SpecPool, type UsableSpec } from "./spec-pool.ts";

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
