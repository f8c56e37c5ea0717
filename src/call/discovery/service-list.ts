/** A service as a directory knows it. */
export interface KnownService {
  readonly serviceId: string;
  readonly name: string;
  /** Those of its operations that can be called, sorted. */
  readonly operationIds: readonly string[];
}

/** Services by their id, as a list that stays what it is once given out. */
export class ServiceList {
  #services: readonly KnownService[] = Object.freeze([]);

  /** Sorted by service id; the same list until something changes. */
  get all(): readonly KnownService[] {
    return this.#services;
  }

  /** Adds a service, in place of what was known of it. */
  put(serviceId: string, name: string, ids: Iterable<string>): void {
    const operationIds = Object.freeze([...ids].sort());
    this.#splice(serviceId, Object.freeze({ serviceId, name, operationIds }));
  }

  delete(serviceId: string): void {
    this.#splice(serviceId);
  }

  #splice(serviceId: string, ...added: readonly KnownService[]): void {
    const services = [...this.#services];
    const at = this.#placeOf(serviceId);
    services.splice(at, services[at]?.serviceId === serviceId ? 1 : 0, ...added);
    this.#services = Object.freeze(services);
  }

  /** Where it is, or would be; sorting all of them each time would make many that come at once slow. */
  #placeOf(serviceId: string): number {
    let [low, high] = [0, this.#services.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#services[middle]?.serviceId ?? "") < serviceId) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
