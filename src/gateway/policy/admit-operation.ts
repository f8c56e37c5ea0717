import type { AccessControl } from "../../core/access/access.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { matchesPattern } from "../glob.ts";
import type { OperationPolicy, SourcePolicy } from "./policy.ts";

/** Tells whether policies leave an operation in: it is enabled, and its source's lists do not leave it out. */
export function isAdmitted(
  { name }: Pick<AnyOperation, "name">,
  { enabled }: OperationPolicy,
  { allow, deny }: SourcePolicy = {},
): boolean {
  const fits = (pattern: string): boolean => matchesPattern(pattern, name);
  return enabled !== false && (allow === undefined || allow.some(fits)) && deny?.some(fits) !== true;
}

/** Copies made before, by what they were made of: while policies stay the same an operation stays the same object. */
const COPIES = new WeakMap<AnyOperation, { readonly scopes: string; readonly copy: AnyOperation }>();

/** Gives an operation that asks for these scopes too; what it works out when first asked stays that way. */
export function withScopes(operation: AnyOperation, scopes: readonly string[] | undefined): AnyOperation {
  if (scopes === undefined || scopes.length === 0) return operation;
  const key = JSON.stringify(scopes);
  const known = COPIES.get(operation);
  if (known?.scopes === key) return known.copy;
  const access = { value: accessWith(operation.access, scopes), enumerable: true };
  const members = { ...Object.getOwnPropertyDescriptors(operation), access };
  const copy = Object.freeze(Object.defineProperties({}, members)) as AnyOperation;
  COPIES.set(operation, { scopes: key, copy });
  return copy;
}

function accessWith(access: AccessControl = {}, scopes: readonly string[]): AccessControl {
  const allOf = [...new Set([...(access.scopes?.allOf ?? []), ...scopes])];
  return Object.freeze({
    ...access,
    scopes: Object.freeze({ ...access.scopes, allOf: Object.freeze(allOf) }),
  });
}
