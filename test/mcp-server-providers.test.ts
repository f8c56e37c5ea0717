import { describe, expect, it } from "vitest";
import { mcpEnvelope, OperationRegistry } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { query, rejection } from "./make-operation.ts";
import { other } from "./mcp-server-other.ts";
import { CLIENTS, legacyClient } from "./mcp-server-peers.ts";

const NOTHING = new OperationRegistry([]);
const textsOf = (read: { readonly contents: readonly object[] }): unknown[] =>
  read.contents.map((part) => (part as { text?: string }).text);

describe.each(Object.entries(CLIENTS))("what other servers offer, seen by %s", (_, connect) => {
  it("Mcp: lists resources as they are, and qualified where two servers have the same", async () => {
    const client = await connect(toMcpServer(NOTHING, { providers: [other("one"), other("two_x")] }));
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual([
      "waybill+one:x://shared",
      "waybill+two.x:x://shared",
      "x://one",
      "x://two_x",
    ]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      "one://{id}/data",
      "two_x://{id}/data",
    ]);
  });

  it("Mcp: reads each resource from whoever has it", async () => {
    const client = await connect(toMcpServer(NOTHING, { providers: [other("one"), other("two_x")] }));
    const read = async (uri: string) => textsOf(await client.readResource({ uri }));
    expect(await read("x://one")).toEqual(["own of one"]);
    expect(await read("waybill+two.x:x://shared")).toEqual(["shared of two_x"]);
    expect(await read("two_x://7/data")).toEqual(["data 7"]);
    expect(await rejection(client.readResource({ uri: "x://shared" }))).toMatchObject({
      code: -32602,
      message: expect.stringContaining("waybill+one:x://shared or waybill+two.x:x://shared"),
    });
    for (const uri of ["x://nowhere", "one://none/data", "waybill+three:x://shared"]) {
      expect(await rejection(client.readResource({ uri }))).toMatchObject({ code: -32602, data: { uri } });
    }
  });

  it("Mcp: passes every address to the one server there is", async () => {
    const only = other("one");
    const client = await connect(toMcpServer(NOTHING, { providers: [only] }));
    await rejection(client.readResource({ uri: "secret://unlisted" }));
    expect(only.asked).toEqual(["secret://unlisted"]);
  });

  it("Mcp: names prompts apart, completes them and templates under those names", async () => {
    const local = { name: "greet", get: () => "hello" };
    const options = { providers: [other("one"), other("two_x")], prompts: [local] };
    const client = await connect(toMcpServer(NOTHING, options));
    const { prompts } = await client.listPrompts();
    const names = prompts.map(({ name }) => name);
    expect(names).toEqual(["greet", "one_greet", "two_x_greet"]);
    const [, , third = ""] = names;
    const { messages } = await client.getPrompt({ name: third, arguments: { who: "Bo" } });
    expect(messages[0]?.content).toEqual({ type: "text", text: "two_x greets Bo" });
    expect(await rejection(client.getPrompt({ name: "one_greet" }))).toMatchObject({ code: -32602 });
    expect(await rejection(client.getPrompt({ name: "nobody" }))).toMatchObject({ code: -32602 });
    const argument = { name: "who", value: "" };
    const { completion } = await client.complete({
      ref: { type: "ref/prompt", name: "one_greet" },
      argument,
    });
    expect(completion).toMatchObject({ total: 101, hasMore: true });
    expect(completion.values).toHaveLength(100);
    const ref = { type: "ref/resource", uri: "one://{id}/data" } as const;
    const found = await client.complete({ ref, argument: { name: "id", value: "a" } });
    expect(found.completion.values).toEqual(["a1", "a2"]);
  });
});

describe("a gateway", () => {
  it("Mcp: reads a link that nobody lists from the server whose result held it", async () => {
    const [one, two] = [other("one"), other("two")];
    const uri = "odd://link";
    const link = query("two.find", () =>
      mcpEnvelope([], { isError: false, content: [{ type: "resource_link", uri, name: "odd" }] }),
    );
    const client = await legacyClient(toMcpServer(new OperationRegistry([link]), { providers: [one, two] }));
    await rejection(client.readResource({ uri }));
    expect([one.asked, two.asked]).toEqual([[], []]);
    await client.callTool({ name: "two_find" });
    await rejection(client.readResource({ uri }));
    expect([one.asked, two.asked]).toEqual([[], [uri]]);
  });

  it("Mcp: subscribes once for all and tells only those who want to know", async () => {
    const one = other("one");
    const server = toMcpServer(NOTHING, { providers: [one, other("two")] });
    const heard: string[] = [];
    const clients = await Promise.all(
      ["a", "b", "c"].map(async (name) => {
        const client = await legacyClient(server);
        client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
          heard.push(`${name} ${params.uri}`);
        });
        return client;
      }),
    );
    await clients[0]?.subscribeResource({ uri: "x://one" });
    await clients[1]?.subscribeResource({ uri: "waybill+one:x://one" });
    one.say({ type: "resource-updated", uri: "x://one" });
    await expect
      .poll(() => heard.toSorted(), { timeout: 20_000 })
      .toEqual(["a x://one", "b waybill+one:x://one"]);
    await clients[0]?.unsubscribeResource({ uri: "x://one" });
    expect(one.asked).toEqual(["+x://one"]);
    await clients[1]?.close();
    await expect.poll(() => one.asked, { timeout: 20_000 }).toEqual(["+x://one", "-x://one"]);
  });

  it("Mcp: asks for logs at the level asked for, and lets go of servers when it closes", async () => {
    const one = other("one");
    const server = toMcpServer(NOTHING, { providers: [one] });
    const client = await legacyClient(server);
    await client.setLoggingLevel("error");
    expect(one.asked).toEqual(["level error"]);
    await server.close();
    expect(one.listeners).toBe(0);
  });

  it("Mcp: tells that lists changed, and lists anew", async () => {
    const one = other("one");
    const server = toMcpServer(NOTHING, { providers: [one] });
    const events: string[] = [];
    const client = await legacyClient(server);
    for (const kind of ["resources", "prompts"] as const) {
      client.setNotificationHandler(`notifications/${kind}/list_changed`, () => void events.push(kind));
    }
    one.say({ type: "resources-changed" });
    one.say({ type: "resources-changed" });
    one.say({ type: "prompts-changed" });
    await expect.poll(() => events, { timeout: 20_000 }).toEqual(["resources", "prompts"]);
  });

  it("Mcp: leaves a server out that cannot be asked, and says so", async () => {
    const broken = other("broken");
    broken.listResources = () => Promise.reject(new Error("secret"));
    const warnings: string[] = [];
    const onWarning = (message: string): void => void warnings.push(message);
    const client = await legacyClient(toMcpServer(NOTHING, { providers: [broken, other("one")], onWarning }));
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(["x://one", "x://shared"]);
    expect(warnings).toEqual(['The resources of "broken" could not be listed.']);
  });

  it("Mcp: refuses two providers of one name, and two resources of one address", () => {
    expect(() => toMcpServer(NOTHING, { providers: [other("one"), other("one")] })).toThrow(TypeError);
    const resource = { uri: "x://a", name: "a", read: () => "a" };
    expect(() => toMcpServer(NOTHING, { resources: [resource, resource] })).toThrow(TypeError);
  });

  it("Mcp: answers bad parameters with -32602, and foreign failures without their words", async () => {
    const read = (): never => {
      throw new Error("secret: hunter2");
    };
    const client = await legacyClient(
      toMcpServer(NOTHING, { resources: [{ uri: "x://a", name: "a", read }], onWarning: () => {} }),
    );
    const bad = client.request({ method: "resources/read", params: { uri: 7 } as never });
    expect(await rejection(bad)).toMatchObject({ code: -32602 });
    const failed = (await rejection(client.readResource({ uri: "x://a" }))) as Error;
    expect(failed.message).not.toContain("hunter2");
  });
});
