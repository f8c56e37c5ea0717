import { describe, expect, it, vi } from "vitest";
import type { Bus } from "../src/call/index.ts";
import type { AnyOperation } from "../src/index.ts";
import type { Bench } from "./bus-contract.ts";
import { query, rejection, until } from "./make-operation.ts";

/** Rows: nested, identity. */
export function describeHops(bench: () => Bench): void {
  describe("nested", () => describeNested(bench));
  describe("identity", () => describeIdentity(bench));
}

/** A service whose handlers can call what others on the bus serve. */
async function serveImporting(
  bench: Bench,
  operations: readonly AnyOperation[],
  needed: readonly string[],
  bus?: Bus,
) {
  const own = bus ?? (await bench.pair.more());
  const service = await bench.serve(operations, {}, own);
  const remote = await bench.find(own);
  // On a busy machine a service may answer after the one who looks for it has stopped waiting.
  await until(() => needed.every((id) => remote.get(id) !== undefined));
  const taken = new Set(operations.map(({ id }) => id));
  service.registry.registerAll({
    operations: remote.operations.filter(({ id }) => !taken.has(id)),
  });
  return service;
}

const ADA = { subject: "ada", scopes: ["read"] };

async function threeHops(bench: Bench, last: AnyOperation) {
  const [one, two] = [
    query("a.one", (input, { execute }) => execute("b.two", input)),
    query("b.two", (input, { execute }) => execute("c.three", input)),
  ];
  await serveImporting(bench, [last], []);
  await serveImporting(bench, [two], [last.id]);
  await serveImporting(bench, [one], [two.id]);
}

function describeNested(bench: () => Bench): void {
  it("Call: deadline, identity and input pass through three hops", async () => {
    await threeHops(
      bench(),
      query("c.three", (input, { identity, deadline = 0, parent }) => {
        const seenAt = performance.now();
        const left = deadline - seenAt;
        return { input, subject: identity?.subject, left, seenAt, parent: parent?.operationId };
      }),
    );
    const options = { identity: ADA, timeoutMs: 20_000 };
    const start = performance.now();
    const { data } = await bench().ask().call("a.one", new Date(1), options);
    expect(data).toMatchObject({ input: new Date(1), subject: "ada" });
    const { left, seenAt, parent } = data as { left: number; seenAt: number; parent: string | undefined };
    expect(left).toBeLessThan(20_000);
    expect(left).toBeGreaterThan(20_000 - (seenAt - start) - 1);
    // The call above is that of the imported operation, where it was imported.
    expect(parent).toBe("c.three");
  });

  it("Call: an abort and a deadline reach the third hop", async () => {
    const heard = vi.fn();
    let begun = 0;
    await threeHops(
      bench(),
      query("c.three", (_, { signal }) => {
        begun++;
        return new Promise(() => signal.addEventListener("abort", heard));
      }),
    );
    const map = bench().ask();
    const controller = new AbortController();
    const aborted = rejection(map.call("a.one", 1, { signal: controller.signal }));
    await until(() => begun === 1);
    controller.abort();
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(1), 20_000);
    // Until the machine is quick enough for it to get there.
    for (let timeoutMs = 60; begun === 1; timeoutMs *= 2) {
      expect(await rejection(map.call("a.one", 1, { timeoutMs }))).toMatchObject({ code: "TIMEOUT" });
    }
    await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(begun), 20_000);
  });

  it("Call: an error of the third hop arrives with its code", async () => {
    await threeHops(
      bench(),
      query("c.three", () => {
        throw Object.assign(new Error("x"), { code: "x" });
      }),
    );
    expect(await rejection(bench().ask().call("a.one"))).toMatchObject({ code: "EXECUTION_ERROR" });
  });

  it("Call: a circle of two services ends with RESOURCE_EXHAUSTED", async () => {
    let runs = 0;
    const around =
      (next: string) =>
      (input: unknown, { execute }: { execute: (id: string, input: unknown) => unknown }) => {
        runs++;
        return execute(next, input);
      };
    const there = await bench().pair.more();
    const first = await bench().serve([query("a.ping", around("b.pong"))]);
    await serveImporting(bench(), [query("b.pong", around("a.ping"))], ["a.ping"], there);
    const remote = await bench().find(bench().pair.answering);
    await until(() => remote.get("b.pong") !== undefined);
    first.registry.registerAll({ operations: remote.operations.filter(({ id }) => id === "b.pong") });
    expect(await rejection(bench().ask().call("a.ping", 1))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(runs).toBeLessThan(200);
  });
}

function describeIdentity(bench: () => Bench): void {
  const guarded = () =>
    query("a.guarded", (_, { identity }) => identity?.subject, { access: { scopes: { allOf: ["read"] } } });

  it("Call: access is checked where the operation runs, by the identity that was proved", async () => {
    await bench().serve([guarded()]);
    const map = bench().ask();
    expect((await map.call("a.guarded", 1, { identity: ADA })).data).toBe("ada");
    const poor = { subject: "bob", scopes: ["write"] };
    expect(await rejection(map.call("a.guarded", 1, { identity: poor }))).toMatchObject({
      code: "ACCESS_DENIED",
    });
    expect(await rejection(map.call("a.guarded"))).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("Call: an identity in the input or in the metadata is ignored", async () => {
    await bench().serve([guarded()]);
    const claims = { identity: ADA, subject: "ada", scopes: ["read"], credential: "x", user: "ada" };
    const error = await rejection(bench().ask().call("a.guarded", claims, { metadata: claims }));
    expect(error).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("Call: a bus that does not carry identities refuses one that cannot be proved", async () => {
    await bench().serve([guarded()]);
    const map = bench().ask({ credentials: undefined });
    const called = map.call("a.guarded", 1, { identity: ADA });
    if (bench().pair.asking.carriesIdentity) expect((await called).data).toBe("ada");
    else expect(await rejection(called)).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(map.size).toBe(0);
  });

  it("Call: a credential that fails, sync or not, fails the call; a bad one is refused there", async () => {
    await bench().serve([guarded()]);
    if (bench().pair.asking.carriesIdentity) {
      const credentials = vi.fn();
      const map = bench().ask({ credentials });
      expect((await map.call("a.guarded", 1, { identity: ADA })).data).toBe("ada");
      expect(credentials).not.toHaveBeenCalled();
      return;
    }
    const sources = [
      () => {
        throw new Error("no key");
      },
      () => Promise.reject(new Error("no key")),
    ];
    for (const credentials of sources) {
      const map = bench().ask({ credentials });
      expect(await rejection(map.call("a.guarded", 1, { identity: ADA }))).toMatchObject({
        code: "EXECUTION_ERROR",
      });
      expect(map.size).toBe(0);
    }
    const forged = bench().ask({ credentials: () => "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.x" });
    expect(await rejection(forged.call("a.guarded", 1, { identity: ADA }))).toMatchObject({
      code: "UNAUTHENTICATED",
    });
  });
}
