import { describe, expect, it } from "vitest";
import type { StateAccess } from "../state/gateway-state.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { type LoginTicket, LoginTickets } from "./login-tickets.ts";
import { GrantSeal } from "./shared-grants.ts";
import { SharedLinks } from "./shared-links.ts";

const KEY = "a key that all replicas of this gateway share";
const ann = { key: "token:ann", subject: "ann" };

function replicas() {
  const store = createLocalStateStore();
  const access: StateAccess = { reach: async () => ({ store, lease: undefined as never }) };
  const of = (key = KEY) => new SharedLinks(access, new GrantSeal(key));
  return { of, store };
}

describe("links of several replicas", () => {
  it("are read at each, used once by all of them, and written by nobody else", async () => {
    const { of } = replicas();
    const ticket = new LoginTickets().issue("crm", ann);
    const written = of().write(ticket);
    expect(written).toMatch(/^[\w-]+$/);
    expect(written).not.toContain(ticket.code);
    const read = of().read(written) as LoginTicket;
    expect(read).toMatchObject({ source: "crm", owner: ann, code: ticket.code });
    expect(of("another key, which is as long as it has to be").read(written)).toBeUndefined();
    expect(of().read(`${written}A`)).toBeUndefined();
    const there = new LoginTickets();
    there.adopt(read);
    expect(there.redeem(read.id, ticket.code)).toMatchObject({ owner: ann });
    expect(await Promise.all([of().use(ticket), of().use(read)])).toEqual(
      expect.arrayContaining([true, false]),
    );
  });

  it("bring a browser back to the replica that sent it, once", async () => {
    const { of } = replicas();
    const [sender, other] = [of(), of()];
    const back: string[] = [];
    const stop = sender.await("state-1", (address) => back.push(address));
    await new Promise(setImmediate);
    expect(other.proof("state-1", "secret")).toBe(sender.proof("state-1", "secret"));
    expect(other.proof("state-2", "secret")).not.toBe(sender.proof("state-1", "secret"));
    expect(await other.handOn("state-2", "https://gateway.example/login/callback?state=state-2")).toBe(true);
    const address = "https://gateway.example/login/callback?state=state-1&code=c";
    expect(await Promise.all([other.handOn("state-1", address), other.handOn("state-1", "x")])).toEqual([
      true,
      false,
    ]);
    await expect.poll(() => back).toEqual([address]);
    stop();
    expect(await other.handOn("state-1", "later")).toBe(true);
    expect(back).toEqual([address]);
  });
});
