import type { Identity } from "../../core/access/identity.ts";
import type { Delivery } from "../bus.ts";

/**
 * Makes an identity of the user that the broker's permissions bind a sender to; nothing the sender wrote is looked at.
 * Without a user the caller is anonymous.
 */
export function fromBrokerUser(
  toIdentity: (user: string) => Identity | undefined,
): (delivery: Delivery) => Identity | undefined {
  return ({ user }) => (user === undefined ? undefined : toIdentity(user));
}
