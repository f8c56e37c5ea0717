import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { NestedCallOptions } from "../operation/operation-context.ts";
import type { EnvOptions, OperationEnv } from "../operation/operation-env-types.ts";
import { checkOption, checkOptionsObject } from "../options/check-options.ts";
import type { OperationEntry } from "./operation-entry.ts";
import type { EntryTable } from "./registry.ts";

/** How the functions of a map make their call. */
export type EnvExecute = (
  id: string,
  input: unknown,
  options: NestedCallOptions | undefined,
) => Promise<ResponseEnvelope>;

type EnvFunction = (input?: unknown, options?: NestedCallOptions) => Promise<ResponseEnvelope>;

/** Reads which namespaces a map holds: none where all are; a `TypeError` says what is wrong with them. */
export function readNamespaces(options: EnvOptions | undefined): ReadonlySet<string> | undefined {
  if (options === undefined) return undefined;
  checkOptionsObject(options, ["namespaces"]);
  const { namespaces } = options;
  const isList = Array.isArray(namespaces) && namespaces.every((name) => typeof name === "string");
  checkOption("namespaces", namespaces, "a list of texts", isList);
  return namespaces === undefined ? undefined : new Set(namespaces);
}

/**
 * Makes the map `env.namespace.name(input)` over a table, which it reads when asked: a hundred thousand operations cost
 * nothing until one is used, and any name is an ordinary key.
 *
 * A member is there when `exists` says so and its call decides about access; enumerating gives what `lists` lets through.
 */
export function operationEnv(
  table: EntryTable,
  execute: EnvExecute,
  lists: (entry: OperationEntry) => boolean,
  exists: (entry: OperationEntry) => boolean = () => true,
): OperationEnv {
  const visible = (entry: OperationEntry) => exists(entry) && lists(entry);
  const some = (namespace: string, test: (entry: OperationEntry) => boolean) => {
    for (const entry of table.byNamespace.get(namespace)?.values() ?? []) if (test(entry)) return true;
    return false;
  };
  const env = readOnlyMap(
    () => [...table.byNamespace.keys()].filter((namespace) => some(namespace, visible)),
    (namespace) => (some(namespace, exists) ? namespaceEnv(namespace) : undefined),
  );
  return env as OperationEnv;

  function namespaceEnv(namespace: string): Readonly<Record<string, EnvFunction>> {
    const names = () => table.byNamespace.get(namespace) ?? new Map<string, OperationEntry>();
    return readOnlyMap(
      () => [...names().values()].filter(visible).map((entry) => entry.operation.name),
      (name) => {
        const entry = names().get(name);
        return entry !== undefined && exists(entry)
          ? (input, options) => execute(entry.id, input, options)
          : undefined;
      },
    );
  }
}

const refuse = () => false;

/** An object without prototype whose members are computed when read. */
function readOnlyMap<T>(
  keys: () => string[],
  read: (key: string) => T | undefined,
): Readonly<Record<string, T>> {
  const member = (key: string | symbol) => (typeof key === "string" ? read(key) : undefined);
  return new Proxy<Record<string, T>>(Object.create(null), {
    get: (_, key) => member(key),
    has: (_, key) => member(key) !== undefined,
    ownKeys: keys,
    getOwnPropertyDescriptor(_, key) {
      const value = member(key);
      return value === undefined ? undefined : { value, enumerable: true, configurable: true };
    },
    set: refuse,
    defineProperty: refuse,
    deleteProperty: refuse,
    setPrototypeOf: refuse,
    preventExtensions: refuse,
  });
}
