import { ServiceDirectory } from "../src/call/discovery/service-directory.ts";
import { toOperationNotice } from "../src/call/discovery/service-notice.ts";
import type { Bus, CallLimits, OperationNotice, ServiceNotice, ServiceWatcher } from "../src/call/index.ts";
import type { RegistryChange } from "../src/index.ts";
import { query } from "./make-operation.ts";

/** Writes down an operation of a query, with other fields where given. */
export const notice = (id: string, extra: Partial<OperationNotice> = {}): OperationNotice => ({
  ...toOperationNotice(query(id, () => 1)),
  ...extra,
});

/** A service that offers these. */
export const service = (serviceId: string, ...operations: readonly OperationNotice[]): ServiceNotice => ({
  serviceId,
  name: `service ${serviceId}`,
  // As if it had come over a wire: no object is shared.
  operations: JSON.parse(JSON.stringify(operations)),
});

/** What a directory in a test is made with. */
interface Setting {
  readonly limits?: Partial<CallLimits>;
  readonly namespaces?: readonly string[];
  /** When the bus has heard of everybody. */
  readonly ready?: Promise<void>;
}

/** A directory on a bus that a test speaks for. */
export function openDirectory({ ready = Promise.resolve(), ...setting }: Setting = {}) {
  const told: string[][] = [];
  const vetted: string[] = [];
  let watcher: ServiceWatcher | undefined;
  const bus: Pick<Bus, "watch"> = {
    watch: (given) => {
      watcher = given;
      return { ready, stop: () => {} };
    },
  };
  const directory = new ServiceDirectory(bus, {
    ...setting,
    handlerFor: ({ namespace, name }) => {
      vetted.push(`${namespace}.${name}`);
      return () => 1;
    },
  });
  directory.onChange((changes) => told.push(changes.map(inWords)));
  return {
    directory,
    vetted,
    /** What listeners heard since it was last asked. */
    heard: () => told.splice(0),
    found: (given: unknown) => watcher?.found(given as ServiceNotice),
    gone: (serviceId: unknown) => watcher?.gone(serviceId as string),
    ids: () => directory.operations.map(({ id }) => id),
  };
}

const inWords = ({ type, operation }: RegistryChange) => `${type} ${operation.id} ${operation.version}`;
