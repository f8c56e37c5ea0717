import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ADA, approve, BOB, pay, replica, requested } from "../../../test/approval-replicas.ts";
import { rejection, until } from "../../../test/make-operation.ts";
import { runs } from "../../../test/runs.ts";
import type { CallError } from "../../index.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import type { StateStore } from "../state/state-store.ts";
import { APPROVAL_LIMITS, type Approver } from "./approvals.ts";
import { APPROVE_SCOPE, type ApprovePolicy } from "./approve-policy.ts";

describe("a call that a person has to approve", () => {
  it("runs as the same call after its approval, once, and at any replica", async () => {
    const store = createLocalStateStore();
    const [one, two] = [replica(store), replica(store)];
    const id = await requested(one);
    expect(await requested(two)).toBe(id);
    await approve(two, id);
    expect((await pay(one, { amount: 5 })).data).toEqual({ amount: 5 });
    const again = await requested(two);
    expect(again).not.toBe(id);
    expect([...one.ran, ...two.ran]).toHaveLength(1);
  });

  it.each<readonly [string, (store: StateStore) => Promise<string>]>([
    ["a changed input", (store) => requested(replica(store), { amount: 6 })],
    ["another caller", (store) => requested(replica(store), { amount: 5 }, { subject: "eve" })],
    [
      "a caller of the same name whom somebody else vouches for",
      (store) => requested(replica(store), { amount: 5 }, { ...ADA, claims: { iss: "https://b.example" } }),
    ],
    ["a member that nobody is shown", (store) => requested(replica(store), { amount: 5, pin: "1" })],
    ["an anonymous caller", (store) => requested(replica(store), { amount: 5 }, "nobody")],
    ["a changed definition", (store) => requested(replica(store, { description: "Pays twice." }))],
  ])("is asked about anew with %s", async (_, call) => {
    const store = createLocalStateStore();
    const one = replica(store);
    const id = await requested(one);
    await approve(one, id);
    expect(await call(store)).not.toBe(id);
    expect(one.ran).toEqual([]);
    await pay(one, { amount: 5 });
    expect(one.ran).toHaveLength(1);
  });

  it("tells inputs apart that look or read alike, and not by the order of their members", async () => {
    const one = replica(createLocalStateStore());
    const alike = ["\u00e9", "e\u0301", "\ud800", "\udfff", "\ufffd", "", "1", 1, "\u200b", null];
    const ids = await Promise.all(alike.map((note) => requested(one, { amount: 5, note })));
    expect(new Set(ids).size).toBe(alike.length);
    expect(await requested(one, { note: "\u00e9", amount: 5.0 })).toBe(ids[0]);
  });

  it("is asked about anew once its approval has expired", async () => {
    let now = Date.now();
    const store = createLocalStateStore({ now: () => now });
    const one = replica(store, { policy: { expiresMs: 10_000 } });
    const id = await requested(one);
    await approve(one, id);
    now += 10_000;
    expect(await requested(one)).not.toBe(id);
    expect(await rejection(approve(one, id))).toMatchObject({ code: "NOT_FOUND" });
    expect(one.ran).toEqual([]);
  });

  it("goes on while it is held, and its wait takes nothing of its own time and no turn", async () => {
    const store = createLocalStateStore();
    const one = replica(store, { policy: { holdMs: 60_000 } });
    const running = pay(one, { amount: 5 });
    const other = pay(one, { amount: 6 });
    await until(() => one.asked.length === 2);
    const waiting = one.asked.find(([{ input }]) => input.includes("5"))?.[0];
    await approve(one, waiting?.id ?? "");
    await running;
    expect(one.ran).toEqual([{ amount: 5 }]);
    const [left] = await one.approvals.list(BOB);
    await one.approvals.decide(left?.id ?? "", { isApproved: false, comment: "not\u0007 today" }, BOB);
    expect(await rejection(other)).toMatchObject({
      code: "APPROVAL_DENIED",
      details: { approval: { state: "denied", comment: "not today" } },
    });
    expect(await rejection(pay(one, { amount: 6 }))).toMatchObject({ code: "APPROVAL_DENIED" });
  });

  it("is told that it has to ask again before its own deadline, and can be left", async () => {
    const one = replica(createLocalStateStore(), { policy: { holdMs: 60_000 } });
    const late = one.registry.execute("bank.pay", { amount: 5 }, { identity: ADA, timeoutMs: 400 });
    expect(await rejection(late)).toMatchObject({ code: "APPROVAL_REQUIRED" });
    const leaving = new AbortController();
    const left = one.registry.execute("bank.pay", { amount: 7 }, { identity: ADA, signal: leaving.signal });
    await until(() => one.asked.length === 2);
    leaving.abort();
    expect(await rejection(left)).toMatchObject({ code: "ABORTED" });
    const closed = pay(one, { amount: 8 });
    await until(() => one.asked.length === 3);
    one.approvals.close();
    expect(await rejection(closed)).toMatchObject({ code: "UNAVAILABLE" });
    expect(one.ran).toEqual([]);
  });

  it("waits for as long as it takes where it is a task, and says so there", async () => {
    const one = replica(createLocalStateStore());
    const said: string[] = [];
    const task = { id: "t-1", hold: async () => {}, say: (message: string) => void said.push(message) };
    const running = one.registry.execute("bank.pay", { amount: 5 }, { identity: ADA, caller: { task } });
    await until(() => one.asked.length === 1);
    expect(said).toEqual(["Waits for a person's approval."]);
    await approve(one, one.asked[0]?.[0].id ?? "");
    expect((await running).data).toEqual({ amount: 5 });
  });

  it("is not asked about again where it is a task that goes on in another process, or is to be ended there", async () => {
    for (const isCancelled of [false, true]) {
      const one = replica(createLocalStateStore());
      const task = { id: "t", handle: { at: "elsewhere" }, isCancelled, hold: async () => {}, say: () => {} };
      await one.registry.execute("bank.pay", { amount: 5 }, { identity: ADA, caller: { task } });
      expect([one.ran.length, one.asked.length]).toEqual([1, 0]);
    }
  });

  it("is refused for a wrong input or a missing right before anybody is asked", async () => {
    const one = replica(createLocalStateStore());
    expect(await rejection(pay(one, { amount: "5" }))).toMatchObject({ code: "VALIDATION_ERROR" });
    expect(await rejection(pay(one, {}))).toMatchObject({ code: "VALIDATION_ERROR" });
    expect(one.asked).toEqual([]);
  });

  it("is shown whole, with what is secret hidden, or not asked about at all", async () => {
    const one = replica(createLocalStateStore());
    const bound = (length: number) => ({ amount: 1, note: "x".repeat(length) });
    const spare = JSON.stringify(bound(0), undefined, 2).length;
    await requested(one, bound(65_536 - spare));
    expect(await rejection(pay(one, bound(65_537 - spare)))).toMatchObject({ code: "TOO_LARGE" });
    await requested(one, { amount: 2, pin: "1234", to: "s3cret\u202e" });
    const shown = one.asked.at(-1)?.[0].input ?? "";
    expect(JSON.parse(shown)).toEqual({ amount: 2, pin: "•••", to: "***\u202e" });
    expect(shown).toContain("\\u202e");
  });

  it.each<readonly [string, object, (size: number) => unknown, number]>([
    [
      "is too deep to be looked through",
      { properties: { in: { $ref: "#" }, amount: { type: "number" }, pin: { format: "password" } } },
      (size) => Array.from({ length: size }).reduce((inner) => ({ in: inner }), { amount: 9_999 }),
      63,
    ],
    [
      "takes too long to be looked through",
      {
        properties: {
          list: { items: { allOf: Array.from({ length: 400 }, () => ({})) } },
          pin: { format: "password" },
        },
      },
      (size) => ({ list: [...Array.from({ length: size - 1 }, () => 1), 9_999] }),
      123,
    ],
  ])(
    "is not asked about where its input %s: its caller could hide what they want",
    async (_, schema, of, size) => {
      const one = replica(createLocalStateStore(), { inputSchema: schema });
      await requested(one, of(size));
      expect(one.asked.at(-1)?.[0].input).toContain("9999");
      expect(await rejection(pay(one, of(size + 1)))).toMatchObject({ code: "TOO_LARGE" });
    },
  );
});

describe("who may approve", () => {
  it.each<readonly [string, ApprovePolicy, Approver, string | undefined]>([
    ["somebody with the scope", {}, BOB, undefined],
    ["somebody without it", {}, { ...BOB, identity: { subject: "bob" } }, "NOT_FOUND"],
    ["the caller", {}, { ...BOB, identity: { ...ADA, scopes: [APPROVE_SCOPE] } }, "ACCESS_DENIED"],
    [
      "the caller, by another credential and a name that is written as theirs",
      {},
      {
        ...BOB,
        identity: { subject: "ada\u200b", scopes: [APPROVE_SCOPE], claims: { iss: "https://b.example" } },
      },
      "ACCESS_DENIED",
    ],
    [
      "the caller, where that may be",
      { own: true },
      { ...BOB, identity: { ...ADA, scopes: [APPROVE_SCOPE] } },
      undefined,
    ],
    ["nobody in particular", { own: true }, { ...BOB, identity: undefined }, "NOT_FOUND"],
    ["somebody with other scopes", { scopes: ["boss"] }, BOB, "NOT_FOUND"],
    ["somebody who is named", { subjects: ["bob"] }, BOB, undefined],
    ["somebody who is not named", { subjects: ["carol"] }, BOB, "NOT_FOUND"],
    ["somebody at another place", { by: ["inspector"] }, BOB, "ACCESS_DENIED"],
  ])("%s", async (_, policy, approver, code) => {
    const one = replica(createLocalStateStore(), { policy });
    const id = await requested(one);
    const decided = await rejection(approve(one, id, approver).then(() => Promise.reject(undefined)));
    expect((decided as CallError | undefined)?.code).toBe(code);
    expect(await one.approvals.list(approver)).toHaveLength(code === "NOT_FOUND" ? 0 : 1);
    if (code === undefined)
      expect(await rejection(approve(one, id, approver))).toMatchObject({ code: "CONFLICT" });
    else await requested(one);
  });

  it("knows no request of another id for the same call", async () => {
    const one = replica(createLocalStateStore());
    const id = await requested(one);
    const forged = `${"0".repeat(12)}${id.slice(12)}`;
    expect(await rejection(approve(one, forged))).toMatchObject({ code: "NOT_FOUND" });
    expect(await rejection(approve(one, "../x"))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("takes the answer at a one-time address once, and not from the caller", async () => {
    const one = replica(createLocalStateStore());
    const id = await requested(one);
    const answer = (ticket: string, by?: string) =>
      one.approvals.decideByTicket(id, ticket, { isApproved: true, by });
    expect(await rejection(answer("another"))).toMatchObject({ code: "NOT_FOUND" });
    expect(await rejection(answer("a-ticket", "ada"))).toMatchObject({ code: "ACCESS_DENIED" });
    expect(await answer("a-ticket", "carol")).toMatchObject({
      state: "approved",
      decision: { by: { subject: "carol" } },
    });
    expect(await rejection(answer("a-ticket"))).toMatchObject({ code: "NOT_FOUND" });
    expect(JSON.stringify(await one.approvals.list(BOB))).not.toContain("ticket");
    await pay(one, { amount: 5 });
  });

  it.each<readonly [string, ApprovePolicy, string]>([
    ["does not count", {}, "APPROVAL_REQUIRED"],
    ["counts where the config says so", { by: ["client"], holdMs: 60_000 }, "ran"],
  ])("the word of the caller's own client %s", async (_, policy, outcome) => {
    const one = replica(createLocalStateStore(), { policy });
    let questions = 0;
    const caller = {
      elicit: async () => {
        questions += 1;
        return { action: "accept", content: { approve: true } } as const;
      },
    };
    const call = one.registry.execute("bank.pay", { amount: 5 }, { identity: ADA, caller });
    expect(
      await call.then(
        () => "ran",
        ({ code }: CallError) => code,
      ),
    ).toBe(outcome);
    expect(questions).toBe(outcome === "ran" ? 1 : 0);
  });
});

describe("calls that wait for approval", () => {
  it("are as many as the limit says, and of one caller a twentieth of that", async () => {
    const one = replica(createLocalStateStore(), { most: 40 });
    const own = 40 / APPROVAL_LIMITS.shares;
    for (let at = 0; at < own; at++) await requested(one, { amount: at });
    const more = { code: "RESOURCE_EXHAUSTED" };
    expect(await rejection(pay(one, { amount: own }))).toMatchObject(more);
    await requested(one, { amount: 0 });
    for (let at = own; at < 40; at++) await requested(one, { amount: at }, { subject: `caller-${at}` });
    expect(await rejection(pay(one, { amount: 1 }, { subject: "one-too-many" }))).toMatchObject(more);
    const waiting = await one.approvals.list(BOB);
    expect(waiting).toHaveLength(40);
    const first = waiting.find(({ caller, input }) => caller.subject === "ada" && /: 0\b/.test(input));
    await approve(one, first?.id ?? "");
    await pay(one, { amount: 0 });
    await requested(one, { amount: own });
    expect(one.ran).toHaveLength(1);
  });

  /** How often approved calls ran, where identical ones are made at two replicas whose store answers in any order. */
  async function runsFor(
    store: StateStore,
    approvals: number,
    calls: readonly number[],
    scheduler: fc.Scheduler,
  ) {
    const slow: StateStore = new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (!["get", "create", "update", "delete"].includes(String(name))) {
          return typeof member === "function" ? member.bind(target) : member;
        }
        const method = member as (...given: unknown[]) => Promise<unknown>;
        return async (...given: unknown[]) => {
          await scheduler.schedule(Promise.resolve());
          return await method.apply(target, given);
        };
      },
    });
    const replicas = [replica(slow), replica(slow)] as const;
    const before = replica(store);
    await approve(before, await requested(before));
    let given = 1;
    const person = async (): Promise<void> => {
      for (let tried = 0; given < approvals && tried < 5; tried++) {
        for (const { id, refusal } of await replicas[0].approvals.list(BOB)) {
          if (refusal !== undefined || given >= approvals) continue;
          given += 1;
          await approve(replicas[1], id).catch(() => {
            given -= 1;
          });
        }
      }
    };
    const call = async (at: number): Promise<void> => {
      for (let tried = 0; tried < 3; tried++) await pay(replicas[at as 0 | 1], { amount: 5 }).catch(() => {});
    };
    const all = Promise.all([person(), ...calls.map(call)]);
    await scheduler.waitFor(all);
    return { ran: replicas[0].ran.length + replicas[1].ran.length, given };
  }

  const twoReplicas = (open: () => StateStore, count: number) =>
    fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 2, maxLength: 5 }),
        async (scheduler, approvals, calls) => {
          const { ran, given } = await runsFor(open(), approvals, calls, scheduler);
          expect(ran).toBeLessThanOrEqual(given);
        },
      ),
      runs(count),
    );

  it("run at most once for each approval, whatever is made at once at two replicas", async () => {
    await twoReplicas(createLocalStateStore, 500);
  });

  it("would be seen to run more often if an approval could be used twice", async () => {
    const broken = (): StateStore => {
      const store = createLocalStateStore();
      return new Proxy(store, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name);
          if (name === "delete")
            return (...given: Parameters<StateStore["delete"]>) => target.delete(...given).then(() => true);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
    };
    await expect(twoReplicas(broken, 2_000)).rejects.toThrow();
  });
});
