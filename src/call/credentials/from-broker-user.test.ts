import { expect, it } from "vitest";
import type { Delivery } from "../bus.ts";
import { fromBrokerUser } from "./token-verifier.ts";

const USERS = new Map([["ada", { subject: "ada", scopes: ["read"] }]]);
const authenticate = fromBrokerUser((user) => USERS.get(user));

function delivery(user?: string): Delivery {
  const request = {
    type: "call.requested",
    requestId: "1",
    operationId: "a.b",
    input: { user: "ada" },
    metadata: { user: "ada" },
    credential: "ada",
  } as const;
  return { request, user, identity: { subject: "root" } };
}

it("Identity: is that of the user the broker names, and of nobody the request names", () => {
  expect(authenticate(delivery("ada"))).toBe(USERS.get("ada"));
  expect(authenticate(delivery())).toBeUndefined();
  expect(authenticate(delivery("eve"))).toBeUndefined();
});
