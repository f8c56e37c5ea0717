import { afterEach, describe, expect, it, vi } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { modern } from "../../../test/mcp-requests.ts";
import type { Identity } from "../../core/access/identity.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createMcpHandler } from "./http/mcp-endpoint.ts";
import { SealingKeys } from "./sealing-keys.ts";
import { toMcpServer } from "./to-mcp-server.ts";

const FORM = { message: "Who?", requestedSchema: { type: "object", properties: {} } } as const;
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const ANSWER = { key: { action: "accept", content: {} } };
const ANN = { subject: "ann" };
const BOB = { subject: "bob" };

interface Round {
  readonly result?: {
    readonly requestState?: string;
    readonly content?: readonly { readonly text: string }[];
    readonly _meta?: Readonly<Record<string, { readonly code?: string }>>;
  };
  readonly error?: { readonly code: number; readonly message?: string; readonly data?: unknown };
  readonly status?: number;
  readonly retryAfter?: string | null;
}

/** A server whose one tool asks a question, and what a caller gets to hear of it. */
function start(waitingCalls: number, sessionKey?: string) {
  const asks = query("ask.form", async (_, { elicit }) => (await elicit(FORM, { key: "key" })).action);
  const server = toMcpServer(new OperationRegistry([asks]), { limits: { waitingCalls }, sessionKey });
  const handler = createMcpHandler(server);
  const round = async (identity: Identity | undefined, params: object = {}): Promise<Round> => {
    const template = modern("tools/call", { name: "ask_form", arguments: {}, ...params });
    const { headers } = template;
    const body = (await template.json()) as { params: { _meta: Record<string, unknown> } };
    body.params._meta[CAPABILITIES] = { elicitation: { form: {} } };
    headers.delete("content-length");
    const request = new Request(template.url, { method: "POST", headers, body: JSON.stringify(body) });
    const response = await handler.fetch(request, { identity });
    const { status, headers: given } = response;
    return { ...((await response.json()) as Round), status, retryAfter: given.get("retry-after") };
  };
  const wait = async (identity: Identity | undefined): Promise<string> => {
    const { result } = await round(identity);
    return result?.requestState === undefined ? String(result?._meta?.["dev.waybill/result"]?.code) : "waits";
  };
  return { server, round, wait };
}

const times = async <T>(count: number, run: () => Promise<T>): Promise<T[]> => {
  const all: T[] = [];
  for (let i = 0; i < count; i++) all.push(await run());
  return all;
};

afterEach(() => void vi.useRealTimers());

describe("WaitingCalls", () => {
  it("Mcp: leaves all places to a caller who is alone, and no more", async () => {
    const { server, wait } = start(8);
    expect(await times(8, () => wait(ANN))).toEqual(Array(8).fill("waits"));
    expect(await wait(ANN)).toBe("RESOURCE_EXHAUSTED");
    await server.close();
  });

  it("X-4 refuses no caller while places are free, whoever else waits", async () => {
    const { server, wait } = start(8);
    expect(await wait(BOB)).toBe("waits");
    expect(await times(7, () => wait(ANN))).toEqual(Array(7).fill("waits"));
    expect(await wait(ANN)).toBe("RESOURCE_EXHAUSTED");
    await server.close();
  });

  it("X-4 keeps a quarter of the places for each of several callers once all are taken, and no more", async () => {
    const { server, wait } = start(8);
    expect(await wait(BOB)).toBe("waits");
    expect(await times(7, () => wait(ANN))).toEqual(Array(7).fill("waits"));
    expect(await times(2, () => wait(BOB))).toEqual(["waits", "RESOURCE_EXHAUSTED"]);
    expect(await times(3, () => wait(undefined))).toEqual(["waits", "waits", "RESOURCE_EXHAUSTED"]);
    await server.close();
  });

  it("X-4 takes from whoever has more than a quarter, the oldest first, for a caller who has less", async () => {
    const { server, round, wait } = start(8);
    const states = await times(8, async () => (await round(ANN)).result?.requestState);
    expect(await times(3, () => wait(BOB))).toEqual(["waits", "waits", "RESOURCE_EXHAUSTED"]);
    const rounds = await Promise.all(
      states.map((requestState) => round(ANN, { requestState, inputResponses: ANSWER })),
    );
    const codes = rounds.map(({ error, result }) => error?.code ?? result?.content?.[0]?.text);
    expect(codes).toEqual([-32_602, -32_602, ...Array(6).fill("accept")]);
    await server.close();
  });

  it("X-4 takes nothing from callers who have no more than a quarter", async () => {
    const { server, wait } = start(4);
    for (const subject of ["a", "b", "c", "d"]) expect(await wait({ subject })).toBe("waits");
    expect(await wait({ subject: "e" })).toBe("RESOURCE_EXHAUSTED");
    await server.close();
  });

  it("Mcp: lets nobody wait where there are no places", async () => {
    const { server, wait } = start(0);
    expect(await wait(ANN)).toBe("RESOURCE_EXHAUSTED");
    await server.close();
  });

  const RIGHTS = { scopes: ["read", "more"], resources: { shop: ["a", "b"] }, tier: "pro" } as const;
  it.each<[string, Partial<Identity>, boolean]>([
    ["lost a scope", { scopes: ["read"] }, false],
    ["lost a resource", { resources: { shop: ["a"] } }, false],
    ["has a lower tier", { tier: "community" }, false],
    ["has a higher tier", { tier: "enterprise" }, false],
    ["has the same rights", {}, true],
    ["has more scopes and resources", { scopes: ["read", "more", "most"], resources: { shop: "*" } }, true],
  ])("X-4 goes on, or not, for a caller who %s since", async (_, rights, goesOn) => {
    const { server, round } = start(8);
    const { result } = await round({ subject: "ann", ...RIGHTS });
    const params = { requestState: result?.requestState, inputResponses: ANSWER };
    const again = await round({ subject: "ann", ...RIGHTS, ...rights }, params);
    expect([again.error?.code, again.result?.content?.length]).toEqual(
      goesOn ? [undefined, 1] : [-32_602, undefined],
    );
    // What has ended stays so, for whoever holds all rights again.
    expect((await round({ subject: "ann", ...RIGHTS }, params)).error?.code).toBe(-32_602);
    await server.close();
  });

  it.each(['{"id":"x"}', "words", "[1,2,3,4]"])("Mcp: does not know a state that says %s", async (words) => {
    const key = "0123456789abcdef0123456789abcdef";
    const { server, round } = start(8, key);
    const requestState = new SealingKeys(key).seal("request-state", words);
    const { error } = await round(ANN, { requestState, inputResponses: ANSWER });
    expect(error?.code).toBe(-32_602);
    await server.close();
  });

  it("X-4 goes on for the same subject of the same issuer alone", async () => {
    const { server, round } = start(8);
    const by = (iss: string): Identity => ({ subject: "ann", claims: { iss } });
    const { result } = await round(by("https://one.example"));
    const params = { requestState: result?.requestState, inputResponses: ANSWER };
    expect(params.requestState).toBeTypeOf("string");
    for (const other of [by("https://two.example"), ANN, undefined]) {
      expect((await round(other, params)).error?.code).toBe(-32_602);
    }
    const renewed = { ...by("https://one.example"), scopes: ["more"] };
    expect((await round(renewed, params)).result?.content).toEqual([{ type: "text", text: "accept" }]);
    await server.close();
  });

  const KEY = "the-key-of-all-replicas-00000000";

  it("Mcp: goes on where the handler waits, and another replica with the key says that it is not the one", async () => {
    const [one, two] = [start(8, KEY), start(8, KEY)];
    const { result } = await one.round(ANN);
    const params = { requestState: result?.requestState, inputResponses: ANSWER };
    const elsewhere = await two.round(ANN, params);
    expect(elsewhere).toMatchObject({
      status: 503,
      retryAfter: "1",
      error: { code: -32_003, data: { reason: "held_elsewhere" } },
    });
    // It was not used up: the same request goes on where the handler waits, once.
    expect((await one.round(ANN, params)).result?.content).toEqual([{ type: "text", text: "accept" }]);
    expect((await one.round(ANN, params)).error?.code).toBe(-32_602);
    await one.server.close();
    await two.server.close();
  });

  it("X-4 says nothing of it to another caller, for what was changed, or when its time is over", async () => {
    const [one, two, other] = [start(8, KEY), start(8, KEY), start(8, `${KEY}-other`)];
    const state = String((await one.round(ANN)).result?.requestState);
    const changed = state.slice(0, 40) + (state[40] === "A" ? "B" : "A") + state.slice(41);
    const code = async ({ round }: typeof one, identity: Identity | undefined, requestState: unknown) => {
      const { status, error } = await round(identity, { requestState, inputResponses: ANSWER });
      return [status, error?.code];
    };
    const invalid = [200, -32_602];
    expect(await code(two, BOB, state)).toEqual(invalid);
    expect(await code(two, undefined, state)).toEqual(invalid);
    expect(await code(other, ANN, state)).toEqual(invalid);
    for (const wrong of [changed, `${state}A`, "", 5, {}])
      expect(await code(two, ANN, wrong)).toEqual(invalid);
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.setSystemTime(Date.now() + 600_001);
    expect(await code(two, ANN, state)).toEqual(invalid);
    vi.useRealTimers();
    for (const { server } of [one, two, other]) await server.close();
  });
});
