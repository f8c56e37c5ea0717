import { CallError } from "../errors/errors.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import type { CallScope } from "./call-scope.ts";
import { turnDown } from "./turned-down.ts";

const MAX_SHOWN_ID = 200;

/** The id a caller asks for: the string itself or the operation's; `""`, which no operation has, for anything else. */
export function idOf(target: unknown): string {
  if (typeof target === "string") return target;
  try {
    const id: unknown = (target as { id?: unknown } | null | undefined)?.id;
    return typeof id === "string" ? id : "";
  } catch {
    return "";
  }
}

/** Finds an operation; an internal one is not there for a caller from outside. */
export function findEntry(host: RegistryHost, id: string, nested: boolean): OperationEntry | undefined {
  const entry = host.table.byId.get(id);
  return entry?.internal === true && !nested ? undefined : entry;
}

/** The reason a call is refused, if there is one; nothing of the input but a resource id and gated features is looked at. */
export function refusalOf(
  entry: OperationEntry,
  id: string,
  scope: CallScope,
  input: unknown,
  way: "execute" | "subscribe",
): CallError | undefined {
  const denied = entry.access?.refusal(scope.identity, input);
  if (denied !== undefined) return entry.internal ? turnDown(denied, id) : denied;
  const fault = entry.ready ? undefined : entry.prepare();
  if (fault !== undefined) return turnDown(fault, id);
  const upgrade = entry.tiers?.refusal(scope.identity, input);
  if (upgrade !== undefined) return upgrade;
  return entry.streams === (way === "subscribe") ? undefined : wrongWay(entry);
}

/** Starts to fetch an operation that is not there, where whoever owns the registry can; an internal one is there. */
export function bringMissing(
  host: RegistryHost,
  id: string,
  { identity }: CallScope,
): Promise<void> | undefined {
  return host.bringMissing === undefined || host.table.byId.has(id)
    ? undefined
    : host.bringMissing(id, identity);
}

/** The same for an id that is not there, one that cannot be, and one that is hidden, unless whoever owns the registry knows better. */
export function missing(host: RegistryHost, id: string, { identity }: CallScope): CallError {
  const explained = host.table.byId.has(id) ? undefined : host.explainMissing?.(id, identity);
  if (explained !== undefined) return explained;
  const message =
    id === "" ? undefined : `There is no operation ${JSON.stringify(id.slice(0, MAX_SHOWN_ID))}.`;
  return turnDown(new CallError("OPERATION_NOT_FOUND", message, { stack: false }), id);
}

function wrongWay({ id, streams }: OperationEntry): CallError {
  const message = streams
    ? `"${id}" is a subscription: use subscribe() instead of execute().`
    : `"${id}" is not a subscription: use execute() instead of subscribe().`;
  return turnDown(new CallError("VALIDATION_ERROR", message), id);
}
