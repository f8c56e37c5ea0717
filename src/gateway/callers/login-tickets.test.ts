import { describe, expect, it } from "vitest";
import {
  LoginTickets,
  MOST_TICKETS,
  MOST_TICKETS_OF_ONE,
  MOST_WRONG_CODES,
  TICKET_MS,
} from "./login-tickets.ts";

const ann = { key: "token:ann", subject: "ann" };
const bob = { key: "token:bob", subject: "bob" };

function tickets() {
  const clock = { now: 1_000 };
  return { clock, held: new LoginTickets(() => clock.now) };
}

describe("links to log in by", () => {
  it("are used up by their code, in whatever way it is typed, once", () => {
    const { held } = tickets();
    const { id, code } = held.issue("crm", ann);
    expect(code).toMatch(/^[B-Z]{4}-[B-Z]{4}$/);
    const typed = ` ${code.toLowerCase().replace("-", " ")} `;
    expect(held.redeem(id, typed)).toMatchObject({ source: "crm", owner: ann });
    expect(held.redeem(id, code)).toBe("unknown");
    expect(held.find(id)).toBeUndefined();
  });

  it("take one wrong code less than ends them, and then nothing any more", () => {
    const { held } = tickets();
    const { id, code } = held.issue("crm", ann);
    for (let wrong = 1; wrong < MOST_WRONG_CODES; wrong++)
      expect(held.redeem(id, "BBBB-BBBB")).toBe("wrong-code");
    const spared = held.issue("crm", bob);
    expect(held.redeem(id, "BBBB-BBBB")).toBe("used-up");
    expect(held.redeem(id, code)).toBe("unknown");
    expect(held.redeem(spared.id, spared.code)).toMatchObject({ owner: bob });
    expect(held.redeem(held.issue("crm", ann).id, "")).toBe("wrong-code");
  });

  it("of replicas are ended by as many wrong codes, whichever is opened in between", () => {
    const { held } = tickets();
    const [one, two] = [tickets().held.issue("crm", ann), tickets().held.issue("crm", ann)];
    for (let wrong = 1; wrong < MOST_WRONG_CODES; wrong++) {
      for (const link of [one, two]) held.adopt(link);
      expect(held.redeem(one.id, "BBBB-BBBB")).toBe("wrong-code");
    }
    held.adopt(two);
    held.adopt(one);
    expect(held.redeem(one.id, "BBBB-BBBB")).toBe("used-up");
    expect(held.redeem(two.id, two.code)).toMatchObject({ owner: ann });
    expect(held.size).toBe(0);
  });

  it("work until their time is up, and no moment longer", () => {
    const { held, clock } = tickets();
    const { id, code } = held.issue("crm", ann);
    clock.now += TICKET_MS - 1;
    expect(held.find(id)).toBeDefined();
    clock.now += 1;
    expect(held.find(id)).toBeUndefined();
    expect(held.redeem(id, code)).toBe("unknown");
    expect(held.size).toBe(0);
  });

  it("are the same for one caller and source while they work for a minute yet, and others for others", () => {
    const { held, clock } = tickets();
    const first = held.issue("crm", ann);
    expect(held.issue("crm", ann)).toBe(first);
    const others = [held.issue("crm", bob), held.issue("erp", ann)];
    expect(new Set([first, ...others].map(({ id }) => id)).size).toBe(3);
    clock.now += TICKET_MS - 59_999;
    expect(held.issue("crm", ann).id).not.toBe(first.id);
  });

  it("of one caller are so many and no more, and nobody else's give way to them", () => {
    const { held } = tickets();
    const kept = held.issue("crm", bob);
    const first = held.issue("s0", ann);
    for (let n = 1; n < MOST_TICKETS_OF_ONE; n++) held.issue(`s${n}`, ann);
    expect(held.find(first.id)).toBeDefined();
    held.issue("one-more", ann);
    expect(held.find(first.id)).toBeUndefined();
    expect(held.find(kept.id)).toBe(kept);
    expect(held.size).toBe(MOST_TICKETS_OF_ONE + 1);
  });

  it("are so many altogether; the oldest gives way", () => {
    const { held } = tickets();
    const first = held.issue("crm", { key: "0", subject: "0" });
    for (let n = 1; n < MOST_TICKETS; n++) held.issue("crm", { key: String(n), subject: "n" });
    expect(held.find(first.id)).toBe(first);
    held.issue("crm", ann);
    expect(held.size).toBe(MOST_TICKETS);
    expect(held.find(first.id)).toBeUndefined();
  });
});
