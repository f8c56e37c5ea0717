import { describe, expect, it } from "vitest";
import type { Identity } from "../src/index.ts";
import { AGENT, heldCalls as served } from "./held-calls.ts";
import { rejection, until } from "./make-operation.ts";
import { clientOf } from "./pass-through.ts";

const post = (url: string, path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${AGENT}`, ...headers },
    body: JSON.stringify(body),
  });

const PAID = { to: "bob", amount: 5 };

describe("a call that a policy holds", () => {
  it("waits over HTTP, runs when somebody approves it, and its record says who did", async () => {
    const { server, ran, records, decide } = await served();
    const answer = post(server.url, "/api/bank/pay", PAID);
    await decide();
    expect(await (await answer).json()).toEqual({ paid: PAID });
    expect(ran).toHaveLength(1);
    expect(records.at(-1)).toMatchObject({
      operation: "bank.pay",
      subject: "agent",
      recognised: "token",
      approval: { decision: "approved", by: "ada", via: "command" },
    });
    expect((await post(server.url, "/api/bank/balance", {})).status).toBe(200);
  });

  it("is answered with where it waits once its caller has no more time, and the same call runs later", async () => {
    const { server, ran, records, decide, waiting } = await served();
    const problem = await post(server.url, "/api/bank/pay", PAID, { "waybill-timeout-ms": "300" });
    expect(problem.status).toBe(428);
    expect(Number(problem.headers.get("retry-after"))).toBeGreaterThan(0);
    const { id } = await waiting();
    expect(await problem.json()).toMatchObject({
      code: "APPROVAL_REQUIRED",
      details: { approval: { id, state: "waiting", url: `${server.url}/approvals/${id}` } },
    });
    expect(records.at(-1)).toMatchObject({ code: "APPROVAL_REQUIRED", approval: { decision: "waiting" } });
    await decide();
    const key = { "idempotency-key": "k-1" };
    expect((await post(server.url, "/api/bank/pay", PAID, key)).status).toBe(200);
    // A repetition of the key has run: nobody is asked, and nothing runs.
    expect((await post(server.url, "/api/bank/pay", PAID, key)).status).toBe(200);
    expect(ran).toHaveLength(1);
  });

  it("has how long it was held in its record, where nobody decided too", async () => {
    const holdMs = 400;
    const { server, records } = await served({ policies: { "bank.*": { approve: { holdMs } } } });
    expect((await post(server.url, "/api/bank/pay", PAID)).status).toBe(428);
    const { approval } = records.at(-1) ?? {};
    expect(approval?.decision).toBe("waiting");
    expect(approval?.heldMs).toBeGreaterThanOrEqual(holdMs);
  });

  it("leaves its idempotency key free while nobody has approved it", async () => {
    const { server, ran, decide } = await served();
    const headers = { "idempotency-key": "k-1", "waybill-timeout-ms": "300" };
    for (const _ of [1, 2]) expect((await post(server.url, "/api/bank/pay", PAID, headers)).status).toBe(428);
    await decide();
    expect((await post(server.url, "/api/bank/pay", PAID, headers)).status).toBe(200);
    expect(ran).toHaveLength(1);
  });

  it.each([2025, 2026] as const)("tells an MCP client of %s that it waits", async (era) => {
    const { server, ran, decide } = await served();
    const client = await clientOf(`${server.url}/mcp`, era, { token: AGENT });
    const said: (string | undefined)[] = [];
    const onprogress = ({ message }: { readonly message?: string | undefined }) => void said.push(message);
    const call = client.callTool({ name: "bank_pay", arguments: PAID }, { onprogress });
    await until(() => said.length > 0);
    expect(said[0]).toBe("Waits for a person's approval.");
    expect(ran).toEqual([]);
    await decide(false);
    const { isError, content } = await call;
    expect(isError).toBe(true);
    expect(JSON.stringify(content)).toContain("APPROVAL_DENIED");
  });

  it("is the call of whoever asked from outside, whatever authority the operation between them has", async () => {
    const { gateway, ran, waiting, decide } = await served();
    const identity: Identity = { subject: "eve" };
    const call = gateway.executor.execute("bank.payTwice", {}, { identity });
    expect((await waiting()).caller.subject).toBe("eve");
    const own = { identity: { subject: "eve", scopes: ["waybill:approve"] }, via: "command" } as const;
    const { id } = await waiting();
    expect(await rejection(gateway.approvals.decide(id, { isApproved: true }, own))).toMatchObject({
      code: "ACCESS_DENIED",
    });
    await decide();
    await call;
    expect(ran).toHaveLength(1);
  });
});
