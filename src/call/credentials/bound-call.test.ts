import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import { runs } from "../../../test/runs.ts";
import { GOOD, KEY, REFUSED, sign, useStartDate } from "../../../test/token-cases.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import type { CallRequested } from "../call-events.ts";
import { type CallHandlerOptions, serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import type { TransportMessage } from "../wire/transport.ts";
import { createMemoryTransport, MemoryBroker } from "../wire/transport.ts";
import { createWireBus } from "../wire/wire-bus.ts";
import { decodeValue, encodeValue } from "../wire/wire-message.ts";
import { createTokenSigner } from "./token-signer.ts";
import { createTokenVerifier } from "./token-verifier.ts";

const ADA = { subject: "ada", scopes: ["pay"] };
const credentials = createTokenSigner({ key: KEY, issuer: "desk" });
const authenticate = createTokenVerifier({ keys: KEY, issuer: "desk" });

describe("the call a token is for", () => {
  useStartDate();

  const request = (extra: Partial<CallRequested>) => ({
    request: { type: "call.requested", requestId: "r", operationId: "note.read", ...extra } as const,
  });

  it("Identity: a token is believed for its own call alone", async () => {
    const credential = await credentials(ADA, "note.read", { requestId: "r", input: { id: 1 } });
    const own = { credential, input: { id: 1 } };
    expect(await authenticate(request(own))).toMatchObject({ subject: "ada" });
    expect(await authenticate(request({ ...own, attempt: 1 }))).toMatchObject({ subject: "ada" });
    for (const other of [
      { operationId: "note.wipe" },
      { requestId: "s" },
      { input: { id: 2 } },
      { input: undefined },
      { attempt: 2 },
    ]) {
      expect(await rejection(authenticate(request({ ...own, ...other })))).toMatchObject(REFUSED);
    }
  });

  it("Identity: a token that does not say which call it is for is refused with what to do, unless it is accepted", async () => {
    const credential = await sign(GOOD);
    expect(await rejection(authenticate(request({ credential })))).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringContaining("update the caller"),
    });
    const lenient = createTokenVerifier({ keys: KEY, issuer: "desk", acceptUnbound: true });
    expect(await lenient(request({ credential }))).toMatchObject({ subject: "ada" });
    const partly = await sign({ ...GOOD, op: "note.read" });
    expect(await rejection(lenient(request({ credential: partly })))).toMatchObject(REFUSED);
  });

  it("Identity: whatever an input is, both ends of a wire agree on it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true }),
        async (input) => {
          let arrived: unknown;
          try {
            arrived = decodeValue(encodeValue(input, "VALIDATION_ERROR"));
          } catch {
            return;
          }
          const credential = await credentials(ADA, "note.read", { requestId: "r", input });
          expect(await authenticate(request({ credential, input: arrived }))).toBeDefined();
        },
      ),
      runs(300),
    );
  });
});

/** A fleet on one broker, and an attacker who hears every request. */
async function fleet(members: number, options: CallHandlerOptions = {}) {
  const broker = new MemoryBroker();
  const hand = createMemoryTransport({ broker });
  const ran: string[] = [];
  const heard: TransportMessage[] = [];
  hand.subscribe("waybill.call.*.*.*", (message) => void heard.push(message));
  const handlers = [];
  for (let member = 0; member < members; member++) {
    const note = (id: string) =>
      query(`billing.${id}`, () => ran.push(`${id} on ${member}`), {
        access: { scopes: { allOf: ["pay"] } },
        annotations: { idempotent: true },
      });
    const registry = new OperationRegistry([note("read"), note("wipe")]);
    const bus = createWireBus(createMemoryTransport({ broker }));
    handlers.push(await serveCalls(registry, bus, { authenticate, ...options }));
  }
  const map = new PendingRequestMap(createWireBus(createMemoryTransport({ broker })), { credentials });
  /** Sends a request once more, changed, and gives what is answered. */
  const replay = async (message: TransportMessage, change: Partial<CallRequested>) => {
    const { event, ...rest } = JSON.parse(new TextDecoder().decode(message.data)) as { event: CallRequested };
    const changed = { ...event, ...change };
    const to = `thief.inbox.${crypto.randomUUID()}`;
    const answers: { event?: { type: string; error?: { code: string } } }[] = [];
    hand.subscribe(to, ({ data }) => void answers.push(JSON.parse(new TextDecoder().decode(data))));
    const bytes = new TextEncoder().encode(JSON.stringify({ ...rest, event: changed }));
    hand.publish(`waybill.call._.${changed.operationId}`, bytes, to);
    await vi.waitFor(() => expect(answers).toHaveLength(1), 20_000);
    return answers[0]?.event?.error?.code ?? answers[0]?.event?.type;
  };
  return { map, ran, heard, replay, handlers };
}

describe("a request that is seen on the bus", () => {
  it("Identity: its token runs no other operation and no other input, and not once more where it ran", async () => {
    const { map, ran, heard, replay, handlers } = await fleet(1);
    await map.call("billing.read", { id: 1 }, { identity: ADA });
    const [seen] = heard as [TransportMessage];
    const { event } = JSON.parse(new TextDecoder().decode(seen.data)) as { event: CallRequested };
    const fresh = () => ({ requestId: crypto.randomUUID() });
    expect(await replay(seen, { ...fresh(), operationId: "billing.wipe" })).toBe("UNAUTHENTICATED");
    expect(await replay(seen, { operationId: "billing.wipe", attempt: 2 })).toBe("UNAUTHENTICATED");
    expect(await replay(seen, fresh())).toBe("UNAUTHENTICATED");
    expect(await replay(seen, { ...fresh(), input: { id: 2 } })).toBe("UNAUTHENTICATED");
    expect(await replay(seen, {})).toBe("CONFLICT");
    expect(await replay(seen, { attempt: 2 })).toBe("UNAUTHENTICATED");
    expect([ran, event.credential?.length]).toEqual([["read on 0"], expect.any(Number)]);
    expect(handlers[0]?.counters).toMatchObject({ unauthenticated: 5, duplicate: 1 });
  });

  it("Identity: the token of a retry is good for that retry, once", async () => {
    const { map, ran, heard, replay } = await fleet(1);
    await map.call("billing.read", 1, { identity: ADA, requestId: "same" });
    const again = await credentials(ADA, "billing.read", { requestId: "same", input: 1, attempt: 2 });
    const [seen] = heard as [TransportMessage];
    expect(await replay(seen, { credential: again, attempt: 2 })).toBe("call.responded");
    expect(await replay(seen, { credential: again, attempt: 2 })).toBe("CONFLICT");
    expect(ran).toHaveLength(2);
  });

  it("Identity: runs once in a fleet that shares what it remembers", async () => {
    const claimed = new Set<string>();
    const claim = async (key: string) => !claimed.has(key) && claimed.add(key) !== undefined;
    const { map, ran, heard, replay } = await fleet(3, { replays: { claim } });
    await map.call("billing.read", 1, { identity: ADA });
    const codes = [];
    for (let n = 0; n < 3; n++) codes.push(await replay((heard as [TransportMessage])[0], {}));
    expect([codes, ran.length]).toEqual([["CONFLICT", "CONFLICT", "CONFLICT"], 1]);
  });

  it("Identity: does not run while what is shared cannot be asked", async () => {
    const claim = async (): Promise<boolean> => {
      throw new Error("redis://secret@10.0.0.1 is away");
    };
    const { map, ran } = await fleet(1, { replays: { claim } });
    const error = await rejection(map.call("billing.read", 1, { identity: ADA }));
    expect(error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect([JSON.stringify(error).includes("10.0.0.1"), ran]).toEqual([false, []]);
  });
});
