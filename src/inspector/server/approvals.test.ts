import { describe, expect, it } from "vitest";
import { atEnd } from "../../../test/gateway-sources.ts";
import { inspectGateway } from "../../../test/inspected-gateway.ts";
import { defineOperation } from "../../index.ts";
import type { ApprovalsAnswer } from "../protocol.ts";

const TOKENS = {
  ann: { token: "ann-token-0000000001" },
  eve: { token: "eve-token-0000000001" },
  bob: { token: "bob-token-0000000001", scopes: ["waybill:approve"] },
} as const;
const as = (name: keyof typeof TOKENS) => ({
  headers: { authorization: `Bearer ${TOKENS[name].token}` },
});

async function held() {
  const drop = defineOperation({ namespace: "desk", name: "drop", handler: () => "dropped" });
  const inspected = await inspectGateway([drop], {
    policies: { "desk.*": { approve: { holdMs: 0 } } },
    serve: { auth: { tokens: TOKENS } },
  });
  atEnd(() => inspected.close());
  const call = async () =>
    (
      await fetch(`${inspected.url}/api/desk/drop`, {
        method: "POST",
        headers: { ...as("ann").headers, "content-type": "application/json" },
        body: "{}",
      })
    ).status;
  const list = async (name: keyof typeof TOKENS) =>
    (await inspected.get<ApprovalsAnswer>("approvals", as(name))).approvals;
  const decide = (name: keyof typeof TOKENS, body: object) =>
    inspected.ask("approvals/decide", { ...as(name), body });
  return { ...inspected, call, list, decide };
}

describe("the approvals of an inspector", () => {
  it("are shown to those who may decide, and to whoever made the call, and decided about by the former", async () => {
    const { call, list, decide } = await held();
    expect(await call()).toBe(428);
    expect(await list("eve")).toEqual([]);
    const [own] = await list("ann");
    expect(own).toMatchObject({ operation: "desk.drop", caller: { subject: "ann" }, refusal: "rights" });
    const id = own?.id ?? "";
    expect((await list("bob"))[0]).not.toHaveProperty("refusal");
    expect((await decide("ann", { id, decision: "approve" })).status).toBe(403);
    expect((await decide("eve", { id, decision: "approve" })).status).toBe(404);
    expect((await decide("bob", { id, decision: "perhaps" })).status).toBe(400);
    expect((await decide("bob", { id, decision: "approve", comment: "fine" })).status).toBe(200);
    expect((await list("ann"))[0]).toMatchObject({
      state: "approved",
      decision: { by: { subject: "bob" }, via: "inspector", comment: "fine" },
    });
    expect([await call(), await call()]).toEqual([200, 428]);
    expect(JSON.stringify(await list("ann"))).not.toMatch(/callerKey|inputDigest|ticket/);
  });

  it("are a view where a policy holds calls", async () => {
    const { get } = await held();
    expect(await get("hello", as("bob"))).toMatchObject({ hasApprovals: true });
    const plain = await inspectGateway([]);
    atEnd(() => plain.close());
    expect(await plain.get("hello")).toMatchObject({ hasApprovals: false });
  });
});
