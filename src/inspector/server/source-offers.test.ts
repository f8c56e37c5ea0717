import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../test/inspected-gateway.ts";
import { until } from "../../../test/make-operation.ts";
import type { CallView, FollowEvent, OffersAnswer, SourceLogAnswer } from "../protocol.ts";
import { MOST_FOLLOWED_EACH, MOST_OFFERED, MOST_OFFERS_ASKED_EACH } from "./inspector-limits.ts";

const SECRET = "notes-bearer-000001";

/** An MCP server over HTTP, of the 2025 revisions. */
interface Notes {
  readonly url: string;
  readonly asked: { readonly method: string; readonly params: Record<string, unknown> }[];
  resources: number;
  /** A method that is answered with an error. */
  refuses: string;
  /** Reads of resources are answered once this is settled. */
  held: Promise<void>;
  update(uri: string): void;
  close(): void;
}

async function serveNotes(): Promise<Notes> {
  const streams = new Set<ServerResponse>();
  const asked: Notes["asked"] = [];
  const notes = { resources: 2, refuses: "", held: Promise.resolve() };
  const answers: Record<string, (params: Record<string, unknown>) => object> = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {} },
      serverInfo: { name: "notes", version: "1.0.0" },
    }),
    "tools/list": () => ({ tools: [{ name: "add", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: `added with ${SECRET}` }] }),
    "resources/list": () => ({
      resources: Array.from({ length: notes.resources }, (_, at) => ({
        uri: `note://${at}`,
        name: `note ${at}`,
        description: `The key is ${SECRET}.`,
      })),
    }),
    "resources/templates/list": () => ({
      resourceTemplates: [{ uriTemplate: "note://{name}", name: "by name" }],
    }),
    "resources/read": ({ uri }) => ({ contents: [{ uri, text: `what stands there: ${SECRET}` }] }),
    "resources/subscribe": () => ({}),
    "resources/unsubscribe": () => ({}),
    "prompts/list": () => ({ prompts: [{ name: "sum", arguments: [{ name: "style", required: true }] }] }),
    "prompts/get": ({ arguments: given }) => ({
      messages: [{ role: "user", content: { type: "text", text: JSON.stringify(given) } }],
    }),
    "completion/complete": () => ({ completion: { values: ["short", "long"] } }),
  };
  const server: Server = createServer(async (request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      streams.add(response);
      return;
    }
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { id, method, params = {} } = JSON.parse(body || "{}");
    asked.push({ method, params });
    if (id === undefined) return response.writeHead(202).end();
    const answer = method === notes.refuses ? undefined : answers[method];
    if (method === "resources/read") await notes.held;
    const content =
      answer === undefined ? { error: { code: -32_601, message: "no" } } : { result: answer(params) };
    return response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, ...content }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(notes, {
    url: `http://127.0.0.1:${port}/mcp`,
    asked,
    update(uri: string) {
      const message = { jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } };
      for (const stream of streams) stream.write(`data: ${JSON.stringify(message)}\n\n`);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  });
}

let notes: Notes;
let open: InspectedGateway | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
  notes.close();
});

async function look(policy: object = {}): Promise<InspectedGateway> {
  notes = await serveNotes();
  open = await inspectGateway([], {
    mcpServers: { notes: { url: notes.url, bearer: SECRET, ...policy } },
    serve: { auth: { tokens: TOKENS } },
  } as Parameters<typeof inspectGateway>[1]);
  return open;
}

const ANN = { headers: as("ann") };
const OLGA = { headers: as("olga") };

describe("what sources offer besides tools", () => {
  it("is listed, read, filled in and completed", async () => {
    const inspected = await look();
    const { sources } = await inspected.get<OffersAnswer>("offers", ANN);
    expect(sources).toMatchObject([
      {
        source: "notes",
        resources: [{ uri: "note://0", name: "note 0" }, { uri: "note://1" }],
        templates: [{ uriTemplate: "note://{name}" }],
        prompts: [{ name: "sum", arguments: [{ name: "style", required: true }] }],
        more: 0,
        canFollow: true,
        canComplete: true,
      },
    ]);
    const read = { source: "notes", uri: "note://0" };
    expect(await inspected.get("offers/read", { ...ANN, body: read })).toMatchObject({
      contents: [{ uri: "note://0" }],
    });
    const prompt = { source: "notes", name: "sum", arguments: { style: "short" } };
    expect(await inspected.get("offers/prompt", { ...ANN, body: prompt })).toMatchObject({
      messages: [{ role: "user", content: { text: '{"style":"short"}' } }],
    });
    const ref = { type: "ref/prompt", name: "sum" };
    const complete = { source: "notes", ref, argument: { name: "style", value: "" }, given: { a: "b" } };
    expect(await inspected.get("offers/complete", { ...ANN, body: complete })).toEqual({
      values: ["short", "long"],
    });
  });

  it("holds no secret of the config, wherever it stands", async () => {
    const inspected = await look();
    const texts = await Promise.all([
      inspected.ask("offers", ANN).then((answer) => answer.text()),
      inspected
        .ask("offers/read", { ...ANN, body: { source: "notes", uri: "note://0" } })
        .then((answer) => answer.text()),
      inspected.ask("log?source=notes", OLGA).then((answer) => answer.text()),
    ]);
    for (const text of texts) {
      expect(text.length).toBeGreaterThan(50);
      expect(text).not.toContain(SECRET);
    }
  });

  it("is there for those alone who have the scopes of the source", async () => {
    const inspected = await look({ policy: { scopes: ["read"] } });
    const bob = { headers: as("bob") };
    expect((await inspected.get<OffersAnswer>("offers", ANN)).sources).toHaveLength(1);
    expect(await inspected.get("offers", bob)).toEqual({ sources: [] });
    for (const path of ["offers/read", "offers/follow"])
      expect((await inspected.ask(path, { ...bob, body: { source: "notes", uri: "note://0" } })).status).toBe(
        404,
      );
    expect(
      (await inspected.ask("offers/prompt", { ...bob, body: { source: "notes", name: "sum" } })).status,
    ).toBe(404);
  });

  it("lists as many of each as there is room for, and says how many there are beside", async () => {
    const inspected = await look();
    notes.resources = MOST_OFFERED + 1;
    const { sources } = await inspected.get<OffersAnswer>("offers", ANN);
    expect(sources[0]?.resources).toHaveLength(MOST_OFFERED);
    expect(sources[0]?.more).toBe(1);
  });

  it.each([
    ["offers/read", { source: "notes" }],
    ["offers/read", { source: "nobody", uri: "note://0" }],
    ["offers/prompt", { source: "notes", name: "sum", arguments: { style: 7 } }],
    ["offers/prompt", { source: "notes", name: "sum", arguments: ["style"] }],
    ["offers/complete", { source: "notes", ref: { type: "ref/prompt" }, argument: { name: "a", value: "" } }],
    ["offers/complete", { source: "notes", ref: "sum", argument: "style" }],
  ])("refuses what makes no sense: %s %j", async (path, body) => {
    const inspected = await look();
    expect([400, 404]).toContain((await inspected.ask(path, { ...ANN, body })).status);
  });

  it("is followed until the page leaves, while others go on", async () => {
    const inspected = await look();
    const body = { source: "notes", uri: "note://0" };
    const follow = async () => {
      const leaving = new AbortController();
      const response = await inspected.ask("offers/follow", { ...ANN, body, signal: leaving.signal });
      const events: FollowEvent[] = [];
      const read = async (): Promise<void> => {
        for await (const chunk of response.body ?? [])
          for (const line of new TextDecoder().decode(chunk).split("\n"))
            if (line !== "") events.push(JSON.parse(line));
      };
      read().catch(() => {});
      await until(() => events.length > 0);
      return { events, leave: () => leaving.abort() };
    };
    const [one, other] = [await follow(), await follow()];
    const left = () => notes.asked.filter(({ method }) => method === "resources/unsubscribe").length;
    notes.update("note://1");
    notes.update("note://0");
    await until(() => one.events.length === 2 && other.events.length === 2);
    one.leave();
    notes.update("note://0");
    await until(() => other.events.length === 3);
    expect(left()).toBe(0);
    other.leave();
    await until(() => left() === 1);
  });

  it("is followed by one caller in at most ten places", async () => {
    const inspected = await look();
    const leaving = new AbortController();
    const follow = (at: number) =>
      inspected.ask("offers/follow", {
        ...ANN,
        body: { source: "notes", uri: `note://${at}` },
        signal: leaving.signal,
      });
    const first = await Promise.all(Array.from({ length: MOST_FOLLOWED_EACH }, (_, at) => follow(at)));
    expect(first.map(({ status }) => status)).toEqual(first.map(() => 200));
    expect((await follow(MOST_FOLLOWED_EACH)).status).toBe(503);
    leaving.abort();
  });

  it("is followed in no more places by requests that come together", async () => {
    const inspected = await look();
    const leaving = new AbortController();
    const body = { source: "notes", uri: "note://0" };
    const asked = Array.from({ length: 2 * MOST_FOLLOWED_EACH }, () =>
      inspected.ask("offers/follow", { ...ANN, body, signal: leaving.signal }),
    );
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    leaving.abort();
    expect(statuses.filter((status) => status === 200)).toHaveLength(MOST_FOLLOWED_EACH);
    expect(statuses.filter((status) => status === 503)).toHaveLength(MOST_FOLLOWED_EACH);
  });

  it("has room for one who was refused, and for one whose server refused", async () => {
    const inspected = await look();
    notes.refuses = "resources/subscribe";
    const follow = (signal?: AbortSignal) =>
      inspected.ask("offers/follow", {
        ...ANN,
        body: { source: "notes", uri: "note://0" },
        ...(signal !== undefined && { signal }),
      });
    for (let at = 0; at < MOST_FOLLOWED_EACH; at += 1) expect((await follow()).status).not.toBe(200);
    notes.refuses = "";
    const leaving = new AbortController();
    expect((await follow(leaving.signal)).status).toBe(200);
    leaving.abort();
  });

  it("is asked for by one caller in at most eight requests at a time, which leaves room for others", async () => {
    const inspected = await look();
    const body = { source: "notes", uri: "note://0" };
    let release = (): void => {};
    notes.held = new Promise((resolve) => {
      release = resolve;
    });
    const together = Array.from({ length: MOST_OFFERS_ASKED_EACH + 1 }, () =>
      inspected.ask("offers/read", { ...ANN, body }),
    );
    const other = inspected.ask("offers/read", { ...OLGA, body });
    // All but the one too many wait for their answers.
    expect((await Promise.race(together)).status).toBe(503);
    release();
    const statuses = (await Promise.all(together)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array.from({ length: MOST_OFFERS_ASKED_EACH }, () => 200), 503]);
    expect((await other).status).toBe(200);
    expect((await inspected.ask("offers/read", { ...ANN, body })).status).toBe(200);
  });
});

describe("what passes between the gateway and a server", () => {
  it("is told with the call it belongs to, to operators alone", async () => {
    const inspected = await look();
    const events = await inspected.run({ operation: "notes.add", input: { text: "hi" } }, ANN);
    const { seq } = events.find(({ type }) => type === "started") as { readonly seq: number };
    const view = await inspected.get<CallView>(`call?seq=${seq}`, OLGA);
    expect(view.messages?.map(({ type, method }) => [type, method])).toEqual([
      ["sent", "tools/call"],
      ["received", "tools/call"],
    ]);
    expect(JSON.stringify(view)).not.toContain(SECRET);
    expect((await inspected.get<CallView>(`call?seq=${seq}`, ANN)).messages).toBeUndefined();
  });

  it("is the log of the source, for operators alone", async () => {
    const inspected = await look();
    await inspected.run({ operation: "notes.add", input: {} }, ANN);
    const { lines } = await inspected.get<SourceLogAnswer>("log?source=notes", OLGA);
    expect(lines.map(({ method }) => method)).toContain("tools/call");
    const last = lines.at(-1)?.n;
    expect(await inspected.get(`log?source=notes&after=${last}`, OLGA)).toEqual({ lines: [] });
    expect((await inspected.ask("log?source=notes", ANN)).status).toBe(403);
  });
});

describe("calls", () => {
  it("are found by what their inputs and results hold, each caller's among their own", async () => {
    const inspected = await look();
    await inspected.run({ operation: "notes.add", input: { text: 'Say "Hello"' } }, ANN);
    await inspected.run({ operation: "notes.add", input: { text: "hello there" } }, OLGA);
    const find = async (text: string, who: object) =>
      (await inspected.get<{ seqs: readonly number[] }>("calls/find", { ...who, body: { text } })).seqs
        .length;
    expect(await find("HELLO", OLGA)).toBe(2);
    expect(await find("HELLO", ANN)).toBe(1);
    expect(await find('say "hello"', ANN)).toBe(1);
    expect(await find("added with", ANN)).toBe(1);
    // A secret cannot be guessed piece by piece.
    for (let length = 4; length <= SECRET.length; length += 5)
      expect(await find(SECRET.slice(0, length), OLGA)).toBe(0);
    for (const text of ["", "  ", "x".repeat(201)])
      expect((await inspected.ask("calls/find", { ...OLGA, body: { text } })).status).toBe(400);
  });

  it("say in the list what they were given and how large that and the result were", async () => {
    const inspected = await look();
    const live = await inspected.live(as("olga"));
    await inspected.run({ operation: "notes.add", input: { text: "hi" } }, ANN);
    const rows = () => live.events.flatMap((event) => (event.type === "calls" ? event.rows : []));
    await until(() => rows().some(({ outcome }) => outcome !== undefined));
    live.close();
    expect(rows().at(-1)).toMatchObject({
      digest: 'text: "hi"',
      inputSize: 13,
      resultSize: expect.any(Number),
    });
  });
});

describe("the first view", () => {
  it("says what clients need, by the address of the page", async () => {
    const inspected = await look();
    const { clients } = await inspected.get<{ clients: { text: string }[] }>(
      "start?origin=https://gate.example:8443",
      ANN,
    );
    expect(clients.map(({ text }) => text.includes("https://gate.example:8443/mcp"))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    for (const origin of ["", "javascript:alert(1)", "file:///etc", `https://${"x".repeat(300)}`])
      expect((await inspected.ask(`start?origin=${encodeURIComponent(origin)}`, ANN)).status).toBe(400);
  });
});
