import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasProgram, type ServedFolder, type UsedFolder, until, useFolder } from "../installed-folder.ts";

let folder: UsedFolder;
let served: ServedFolder;

beforeAll(async () => {
  folder = useFolder();
  served = await folder.serve([]);
});
afterAll(() => folder.remove());

interface Parcel {
  readonly id: string;
  readonly to: string;
  readonly kg: number;
}

const post = (path: string, body: object) =>
  fetch(`${served.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const callOverHttp = async <T>(operation: string, input: object = {}): Promise<T> =>
  (await post("/call", { operation, input })).json() as Promise<T>;
const commandsIn = (text: string): string[] => {
  const [, block = ""] = /Try in another terminal\n((?: {2}.+\n)+)/.exec(text) ?? [];
  return block.trim().split(/\n\s*/);
};

describe("the embedded default", () => {
  it("RE-30 says what it mounted, from where, and where it serves it", () => {
    const said = served.stderr();
    expect(served.stdout()).toBe("");
    expect(said).toContain("13 operations of 3 sources, from the embedded default");
    expect(said).toContain(`state is kept in ${folder.state}`);
    expect(said).toMatch(/depot +up +mcp +3 .*depot-server\.js/);
    expect(said).toMatch(/tariff +up +openapi +4 .*http:\/\/127\.0\.0\.1:\d+\/openapi\.json/);
    expect(said).toMatch(/local +up +local +6 .*this process/);
    for (const path of ["/mcp", "/api", "/openapi.json", "/docs", "/metrics"])
      expect(said).toContain(`${served.url}${path}\n`);
  });

  it("RE-30 suggests three commands, each of which works when it is pasted", async () => {
    const lines = commandsIn(served.stderr());
    expect(lines).toHaveLength(3);
    const runnable = lines.filter((line) => hasProgram(line.split(" ", 1)[0] as string));
    const ran = await Promise.all(runnable.map((line) => folder.shell(line)));
    // npm has words of its own about how it is configured.
    const said = ran.map(({ code, stderr }) => [code, stderr.replaceAll(/^npm warn .*\n/gm, "")]);
    expect(said).toEqual(runnable.map(() => [0, ""]));
    expect(ran[0]?.stdout).toContain("parcel.book");
    for (const { stdout } of ran.slice(1)) {
      const { parcels } = JSON.parse(stdout) as { parcels: Parcel[] };
      expect(parcels.map(({ id }) => id)).toContain("P-1001");
    }
  });

  it("RE-30 serves all three sources over MCP", async () => {
    // The validator it has by itself writes code, which the second run forbids.
    const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();
    const client = new Client({ name: "test", version: "1.0.0" }, { jsonSchemaValidator });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${served.url}/mcp`)));
    try {
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(["parcel_track", "depot_stock", "tariff_quote"]));
      const call = async (name: string, args: Record<string, unknown>) =>
        (await client.callTool({ name, arguments: args })).structuredContent;
      expect(await call("parcel_track", { id: "P-1001" })).toMatchObject({ to: "Lisbon" });
      expect(await call("tariff_quote", { kg: 2, zone: "europe" })).toMatchObject({ zone: "europe", kg: 2 });
      expect(await call("depot_stock", { item: "tape" })).toMatchObject({ stock: [{ item: "tape" }] });
    } finally {
      await client.close();
    }
  });

  it("RE-30 serves all three sources over HTTP, as its document says", async () => {
    const document = (await (await fetch(`${served.url}/openapi.json`)).json()) as {
      openapi: string;
      servers: { url: string }[];
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    expect(document.openapi).toMatch(/^3\./);
    const methods = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => ({ path, method, operationId })),
    );
    const base = new URL(document.servers[0]?.url ?? "/", `${served.url}/openapi.json`).href;
    const call = async (id: string, input: Record<string, string | number>) => {
      const found = methods.find(({ operationId }) => operationId === id);
      const url = new URL((found?.path ?? "/nowhere").slice(1), base);
      const isQuery = found?.method === "get";
      if (isQuery) for (const [name, value] of Object.entries(input)) url.searchParams.set(name, `${value}`);
      const response = isQuery ? await fetch(url) : await post(url.pathname, input);
      return [url.pathname.startsWith("/api/"), response.status, await response.json()];
    };
    const answers = await Promise.all([
      call("parcel.list", { limit: 1 }),
      call("depot.stock", { item: "tape" }),
      call("tariff.quote", { kg: 2, zone: "europe" }),
    ]);
    expect(answers).toEqual([
      [true, 200, expect.objectContaining({ parcels: [expect.objectContaining({ id: "P-1001" })] })],
      [true, 200, { stock: [expect.objectContaining({ item: "tape" })] }],
      [true, 200, expect.objectContaining({ zone: "europe" })],
    ]);
  });

  it("RE-30 has an operation that asks an HTTP API and an MCP server, here and where nothing runs yet", async () => {
    const planned = { days: 5, box: { item: "box-large", boxes: 40, shelf: "A2" } };
    expect(await callOverHttp("parcel.plan", { zone: "europe", kg: 6 })).toMatchObject(planned);
    expect(await folder.json(["call", "parcel.plan", "zone=europe", "kg=6"])).toMatchObject(planned);
  });

  it("RE-30 has a page of its API, tells how it is doing, and counts calls", async () => {
    const page = await fetch(`${served.url}/docs`);
    // The inspector is the page; without it, the page is a plain list.
    expect([page.url, page.status, page.headers.get("content-type")]).toEqual([
      `${served.url}/inspect/`,
      200,
      expect.stringMatching(/^text\/html/),
    ]);
    const led = await fetch(`${served.url}/docs`, { redirect: "manual" });
    expect([led.status, led.headers.get("location"), await led.text()]).toEqual([302, "inspect/", ""]);
    expect(await page.text()).toMatch(/<html/i);
    for (const path of ["/health", "/ready"]) expect((await fetch(`${served.url}${path}`)).status).toBe(200);
    await callOverHttp("parcel.track", { id: "P-1002" });
    const metrics = await (await fetch(`${served.url}/metrics`)).text();
    expect(metrics).toMatch(/waybill_calls_total\{[^}]*parcel\.track[^}]*\} [1-9]/);
    expect(metrics).toMatch(/source="depot"/);
  });

  it("RE-30 passes its own checks over MCP and over HTTP", async () => {
    const { code, stdout, stderr } = await folder.run(["check", served.url, "--json", "--timeout", "20s"]);
    const { reports } = JSON.parse(stdout) as {
      reports: { checks: { id: string; subject: string; status: string }[] }[];
    };
    expect(reports).toHaveLength(2);
    const failed = reports.flatMap(({ checks }) => checks.filter(({ status }) => status === "fail"));
    expect([failed, code, stderr]).toEqual([[], 0, ""]);
  });

  it("RE-30 takes the next port when a second one is started, which shares its parcels", async () => {
    const second = await folder.serve([]);
    try {
      expect(second.url).not.toBe(served.url);
      expect(second.stderr()).toMatch(/Port \d+ is in use; listening on \d+ instead\./);
      const { id } = await callOverHttp<Parcel>("parcel.book", { to: "Bergen", kg: 4 });
      const found = await folder.json<Parcel>(["call", "parcel.track", `id=${id}`, "--url", second.url]);
      expect(found).toMatchObject({ id, to: "Bergen", kg: 4 });
    } finally {
      expect(await second.stop()).toEqual({ code: 0, signal: null });
    }
  });

  it("RE-30 keeps parcels over a restart, and gives no number twice", async () => {
    const first = await callOverHttp<Parcel>("parcel.book", { to: "Porto", kg: 3 });
    expect(await served.stop()).toEqual({ code: 0, signal: null });
    served = await folder.serve();
    expect(await callOverHttp<Parcel>("parcel.track", { id: first.id })).toEqual(first);
    const second = await callOverHttp<Parcel>("parcel.book", { to: "Faro" });
    expect(second.id).not.toBe(first.id);
    // Without a server the command reads the same book.
    expect(await folder.json<Parcel>(["call", "parcel.track", `id=${second.id}`])).toEqual(second);
  });

  it("RE-30 streams what happens while others book, through the gateway and without it", async () => {
    const { parcels } = await folder.json<{ parcels: Parcel[] }>(["call", "parcel.list", "limit=100"]);
    const { length } = parcels;
    const ways = [[], ["--url", served.url]];
    // What has happened so far comes first: once that is there, the stream is open.
    const watching = ways.map((way) => folder.stream(["call", "parcel.watch", ...way]));
    const seen = (index: number) => watching[index]?.stdout().trim().split("\n").filter(Boolean) ?? [];
    await until(
      () => [seen(0).length, seen(1).length],
      (counts) => counts.every((count) => count >= length),
    );
    const booked = await folder.json<Parcel>(["call", "parcel.book", "to=Tromsø"]);
    for (const index of [0, 1]) {
      const lines = await until(
        () => seen(index),
        (found) => (found.at(-1) ?? "").includes(booked.id),
      );
      expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ id: booked.id, what: "booked", to: "Tromsø" });
    }
    for (const command of watching) {
      expect((await command.stop("SIGINT")).code).toBe(130);
      expect(command.stderr()).toBe("");
    }
  });

  it.each(["depot.label", "parcel.track", "tariff.convert", "tariff.zone"])(
    "RE-30 describes %s with an example that works when it is pasted",
    async (id) => {
      const { example } = await folder.json<{ example: string }>(["describe", id, "--json"]);
      const { code, stderr } = await folder.shell(example);
      expect([example, code, stderr]).toEqual([example, 0, ""]);
    },
  );

  it("RE-30 ends a stream after as many values as were asked for", async () => {
    const { code, stdout, stderr } = await folder.run(["call", "parcel.watch", "--take", "2"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).sequence),
    ).toEqual([1, 2]);
  });
});
