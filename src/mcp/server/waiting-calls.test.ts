import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { modern } from "../../../test/mcp-requests.ts";
import type { Identity } from "../../core/access/identity.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createMcpHandler } from "./http-handler.ts";
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
  readonly error?: { readonly code: number };
}

/** A server whose one tool asks a question, and what a caller gets to hear of it. */
function start(waitingCalls: number) {
  const asks = query("ask.form", async (_, { elicit }) => (await elicit(FORM, { key: "key" })).action);
  const server = toMcpServer(new OperationRegistry([asks]), { limits: { waitingCalls } });
  const handler = createMcpHandler(server);
  const round = async (identity: Identity | undefined, params: object = {}): Promise<Round> => {
    const template = modern("tools/call", { name: "ask_form", arguments: {}, ...params });
    const { headers } = template;
    const body = (await template.json()) as { params: { _meta: Record<string, unknown> } };
    body.params._meta[CAPABILITIES] = { elicitation: { form: {} } };
    headers.delete("content-length");
    const request = new Request(template.url, { method: "POST", headers, body: JSON.stringify(body) });
    return (await (await handler.fetch(request, { identity })).json()) as Round;
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
});
