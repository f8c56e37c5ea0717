import { userInfo } from "node:os";
import type { Identity } from "../../core/access/identity.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { GatewayConfig } from "../../gateway/config/gateway-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";

/** What an owner owns. */
export interface Owned {
  readonly gateway: Pick<Gateway, "executor">;
  readonly loaded: { readonly config: GatewayConfig };
}

/**
 * The person who runs the command: the config is theirs, so they hold all that the config and what is mounted ask for, whatever that is when it
 * is asked for, and the scopes in `more`.
 */
export function ownerIdentity(owned: Owned, more: readonly string[] = []): Identity {
  return {
    subject: userName(),
    tier: "enterprise",
    get scopes() {
      return [...new Set([...configScopes(owned.loaded.config), ...operationScopes(owned), ...more])];
    },
    get resources() {
      const rules = [...owned.gateway.executor.operations].flatMap(({ access }) => access?.resource ?? []);
      return Object.fromEntries(rules.map(({ type }) => [type, "*"] as const));
    },
  };
}

/**
 * The owner, for a call of one operation. Nobody where the operation asks for no rights and the bus could not be told who is asking: what
 * is mounted from there is called as before.
 */
export function ownerFor(operation: AnyOperation, owned: Owned): Identity | undefined {
  return asksRights(operation) || !hasBareBus(owned.loaded.config) ? ownerIdentity(owned) : undefined;
}

/** The owner, for whatever is called over a connection. */
export function ownerOfAll(owned: Owned): Identity | undefined {
  const { config } = owned.loaded;
  return !hasBareBus(config) || configScopes(config).length > 0 ? ownerIdentity(owned) : undefined;
}

function userName(): string {
  try {
    return userInfo().username || "owner";
  } catch {
    // A user that the system has no name for.
    return "owner";
  }
}

function configScopes({ mcpServers = {}, openapi = {}, bus, policies = {} }: GatewayConfig): string[] {
  const sources = [...Object.values(mcpServers), ...Object.values(openapi), bus];
  const rules = [...sources.map((source) => source?.policy), ...Object.values(policies)];
  return rules.flatMap((policy) => [...(policy?.scopes ?? []), ...(policy?.approve?.scopes ?? [])]);
}

function operationScopes({ gateway }: Owned): string[] {
  return [...gateway.executor.operations].flatMap(({ access: { scopes } = {} }) => [
    ...(scopes?.allOf ?? []),
    ...(scopes?.anyOf ?? []),
  ]);
}

function asksRights({ access, tier = "community", features = [] }: AnyOperation): boolean {
  return access !== undefined || tier !== "community" || features.length > 0;
}

/** A bus on which nobody can prove who they are. */
function hasBareBus({ bus }: GatewayConfig): boolean {
  return bus?.mount !== undefined && bus.mount !== false && bus.secret === undefined;
}
