import { onTestFinished } from "vitest";
import {
  type Bus,
  CallHandler,
  createMemoryBus,
  createRemoteRegistry,
  type RemoteRegistryOptions,
} from "../src/call/index.ts";
import { type AnyOperation, OperationRegistry } from "../src/index.ts";

/** The ids of operations, in their order. */
export const ids = (operations: Iterable<AnyOperation>) => [...operations].map(({ id }) => id);
/** Serves operations on a bus, as a process of its own would. */
export async function serve(bus: Bus, operations: readonly AnyOperation[]) {
  const registry = new OperationRegistry(operations);
  const handler = new CallHandler(registry, bus);
  await handler.start();
  let left: Promise<void> | undefined;
  const leave = () => {
    left ??= handler.drain();
    return left;
  };
  onTestFinished(leave);
  return { registry, leave };
}

/** Finds what is on a bus, until the test is over. */
export async function connect(bus: Bus, options?: RemoteRegistryOptions) {
  const remote = await createRemoteRegistry(bus, options);
  onTestFinished(() => remote.close());
  return remote;
}

/** A service and a registry that found it, on a bus of their own. */
export async function pair(operations: readonly AnyOperation[], options?: RemoteRegistryOptions) {
  const bus = createMemoryBus();
  const service = await serve(bus, operations);
  return { bus, ...service, remote: await connect(bus, options) };
}
