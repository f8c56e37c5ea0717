import { expect } from "vitest";
import type { ApprovalRecord } from "../src/gateway/approvals/approval-record.ts";
import { Approvals, type Approver } from "../src/gateway/approvals/approvals.ts";
import { APPROVE_SCOPE, type ApprovePolicy } from "../src/gateway/approvals/approve-policy.ts";
import { createPolicies, type Policies } from "../src/gateway/policy/policies.ts";
import type { StateStore } from "../src/gateway/state/state-store.ts";
import {
  type CallError,
  defineOperation,
  type Identity,
  OperationRegistry,
  type TSchema,
  Type,
} from "../src/index.ts";
import { rejection } from "./make-operation.ts";

/** Somebody who calls. */
export const ADA: Identity = { subject: "ada" };
/** Somebody who may approve. */
export const BOB: Approver = { identity: { subject: "bob", scopes: [APPROVE_SCOPE] }, via: "page" };

/** A replica of a gateway whose one operation waits for a person. */
export interface Replica {
  readonly registry: OperationRegistry;
  readonly approvals: Approvals;
  readonly policies: Policies;
  readonly ran: unknown[];
  readonly asked: [ApprovalRecord, string][];
}

interface World {
  readonly most?: number;
  readonly policy?: ApprovePolicy;
  readonly description?: string;
  readonly inputSchema?: TSchema;
}

const PAYMENT: TSchema = Type.Object({
  amount: Type.Number(),
  pin: Type.Optional(Type.String({ format: "password" } as never)),
});

/** Makes a replica of a gateway with one operation that a person has to approve. */
export function replica(
  store: StateStore,
  { most = 1_000, policy = {}, description = "Pays.", inputSchema = PAYMENT }: World = {},
): Replica {
  const ran: unknown[] = [];
  const asked: [ApprovalRecord, string][] = [];
  const approvals: Approvals = new Approvals({
    records: async () => store,
    policyOf: (id) => policies.approveOf(id),
    operationOf: (id) => registry.get(id),
    sourceOf: () => "bank",
    mask: (text) => text.replaceAll("s3cret", "***"),
    most: () => most,
    isShared: () => true,
    createTicket: () => "a-ticket",
    onAsked: (record, ticket) => void asked.push([record, ticket]),
    addressOf: (id) => `http://gate.example/approvals/${id}`,
  });
  const policies = createPolicies({
    rules: {
      sources: new Map(),
      sourceOf: () => "bank",
      policies: {
        "bank.*": { approve: { holdMs: 0, ...policy }, timeoutMs: 5_000, rate: { calls: 1, perMs: 1 } },
      },
    },
    approvals,
  });
  const pay = defineOperation({
    namespace: "bank",
    name: "pay",
    description,
    inputSchema,
    handler: (input) => {
      ran.push(input);
      return input;
    },
  });
  const registry = new OperationRegistry([pay]);
  registry.use(policies.hooks);
  return { registry, approvals, policies, ran, asked };
}

/** Calls it. */
export const pay = (at: Replica, input: unknown, identity: Identity | "nobody" = ADA) =>
  at.registry.execute("bank.pay", input as never, identity === "nobody" ? {} : { identity });

/** Makes a call that waits, and gives the id of its request. */
export async function requested(
  at: Replica,
  input: unknown = { amount: 5 },
  identity: Identity | "nobody" = ADA,
): Promise<string> {
  const error = (await rejection(pay(at, input, identity))) as CallError;
  expect(error).toMatchObject({ code: "APPROVAL_REQUIRED", httpStatus: 428, retryable: true });
  return (error.details as { approval: { id: string } }).approval.id;
}

/** Approves a request. */
export const approve = (at: Replica, id: string, by = BOB) =>
  at.approvals.decide(id, { isApproved: true }, by);
