import { afterEach, describe, expect, it } from "vitest";
import {
  CallError,
  defineOperation,
  OperationRegistry,
  Tasks,
  type TasksOptions,
  toolError,
} from "../src/index.ts";
import {
  createHttpHandler,
  fromOpenApi,
  type HttpHandler,
  type HttpHandlerOptions,
} from "../src/openapi/index.ts";
import { until } from "./make-operation.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

interface Served {
  readonly handler: HttpHandler;
  readonly tasks: Tasks;
  readonly ends: ((value: unknown) => void)[];
  readonly aborted: unknown[];
  readonly runs: string[];
}

function serve(options: HttpHandlerOptions = {}, taskOptions: TasksOptions = {}): Served {
  const ends: ((value: unknown) => void)[] = [];
  const aborted: unknown[] = [];
  const runs: string[] = [];
  const registry = new OperationRegistry([
    defineOperation({
      namespace: "job",
      name: "long",
      handler: (_, { signal, progress }) => {
        runs.push("long");
        progress({ done: 1, of: 4, message: "Looking." });
        return new Promise((resolve, reject) => {
          ends.push(resolve);
          signal.addEventListener("abort", () => {
            aborted.push(signal.reason);
            reject(signal.reason);
          });
        });
      },
    }),
    defineOperation({
      namespace: "job",
      name: "bytes",
      type: "query",
      inputSchema: { type: "object" },
      handler: () => Uint8Array.of(0, 255, 10),
    }),
    defineOperation({
      namespace: "job",
      name: "no",
      handler: () => toolError({ because: "no" }, { message: "No." }),
    }),
    defineOperation({
      namespace: "job",
      name: "breaks",
      handler: () => Promise.reject(new CallError("UNAVAILABLE", "Not now.")),
    }),
    defineOperation({
      namespace: "job",
      name: "secret",
      access: { scopes: { allOf: ["s"] } },
      handler: () => "deep",
    }),
  ]);
  const tasks = new Tasks(taskOptions);
  const handler = createHttpHandler(registry, { tasks, onWarning: () => {}, ...options });
  open.push(tasks, handler);
  return { handler, tasks, ends, aborted, runs };
}

// biome-ignore lint/suspicious/noExplicitAny: its members are what is tested
type Json = any;

const ask = (handler: HttpHandler, path: string, init: RequestInit = {}): Promise<Response> =>
  handler.fetch(new Request(`http://localhost${path}`, init));

const post = (
  handler: HttpHandler,
  path: string,
  headers: Record<string, string> = {},
  body: unknown = {},
): Promise<Response> =>
  ask(handler, path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const LATER = { prefer: "respond-async" };
const WAIT = { headers: { prefer: "wait=30" } };

describe("a call that is answered later over HTTP", () => {
  it("is accepted with its place, told of, and answered there as the call would have been", async () => {
    const { handler, ends } = serve();
    const accepted = await post(handler, "/api/job/long", LATER);
    expect(accepted.status).toBe(202);
    const location = accepted.headers.get("location") ?? "";
    expect(location).toMatch(/^\/tasks\/[0-9a-f]{32}$/);
    expect([accepted.headers.get("retry-after"), accepted.headers.get("preference-applied")]).toEqual([
      "1",
      "respond-async",
    ]);
    expect(await accepted.json()).toMatchObject({
      status: "working",
      operation: "job.long",
      endsWithServer: true,
      links: { self: location },
    });
    await until(() => ends.length === 1);
    const early = await ask(handler, `${location}/result`);
    expect([early.status, early.headers.get("retry-after")]).toEqual([202, "1"]);
    for (;;) {
      const { progress, message } = (await (await ask(handler, location)).json()) as Json;
      if (progress === undefined) continue;
      expect([progress, message]).toEqual([{ progress: 1, total: 4 }, "Looking."]);
      break;
    }
    const waiting = ask(handler, `${location}/result`, { headers: { prefer: "wait=30" } });
    ends[0]?.({ found: 3 });
    const answer = await waiting;
    expect([answer.status, await answer.json()]).toEqual([200, { found: 3 }]);
    const status = await ask(handler, location);
    expect(await status.json()).toMatchObject({
      status: "completed",
      links: { result: `${location}/result` },
    });
    expect(status.headers.get("retry-after")).toBeNull();
    const texts = new Set<string>();
    for (let i = 0; i < 3; i++) texts.add(await (await ask(handler, `${location}/result`)).text());
    expect([...texts]).toEqual(['{"found":3}']);
  });

  it("waits first for as long as its client says, and is a task only then", async () => {
    const { handler, ends } = serve();
    const quick = await post(handler, "/api/job/no", { prefer: "respond-async, wait=30" });
    expect(quick.status).toBe(422);
    const slow = await post(
      handler,
      "/call",
      { prefer: 'respond-async; wait="1"' },
      { operation: "job.long" },
    );
    expect(slow.status).toBe(202);
    ends[0]?.({});
    // What is said twice counts as it was said first (RFC 7240).
    const twice = await post(
      handler,
      "/call",
      { prefer: "respond-async, wait=0, wait=60" },
      { operation: "job.long" },
    );
    expect(twice.status).toBe(202);
    ends[1]?.({});
  });

  it("is of any operation, by GET too, in any representation, problems and bytes included", async () => {
    const { handler } = serve();
    const resultOf = async (accepted: Response, headers: Record<string, string> = {}): Promise<Response> => {
      const wait = { prefer: "wait=30", ...headers };
      return await ask(handler, `${accepted.headers.get("location")}/result`, { headers: wait });
    };
    const bytes = await ask(handler, "/api/job/bytes", { headers: LATER });
    expect(bytes.status).toBe(202);
    const read = await resultOf(bytes);
    expect([read.headers.get("content-type"), [...new Uint8Array(await read.arrayBuffer())]]).toEqual([
      "application/octet-stream",
      [0, 255, 10],
    ]);
    const no = await post(handler, "/api/job/no", LATER);
    const problem = await resultOf(no);
    expect([problem.status, problem.headers.get("content-type")]).toEqual([422, "application/problem+json"]);
    expect(await (await ask(handler, no.headers.get("location") ?? "")).json()).toMatchObject({
      status: "failed",
      message: "No.",
    });
    const envelope = await resultOf(no, { accept: "application/vnd.waybill.envelope+json" });
    expect(await envelope.json()).toMatchObject({ data: { because: "no" }, meta: { isError: true } });
    const breaks = await resultOf(await post(handler, "/api/job/breaks", LATER));
    expect([breaks.status, ((await breaks.json()) as Json).code]).toEqual([503, "UNAVAILABLE"]);
  });

  it("has its result in the form that the address asks for, as a call has", async () => {
    const { handler } = serve();
    const location = (await post(handler, "/api/job/no", LATER)).headers.get("location") ?? "";
    const named = (format: string) => ask(handler, `${location}/result?waybill-format=${format}`, WAIT);
    const whole = await named("envelope");
    expect([whole.status, ((await whole.json()) as Json).meta?.isError]).toEqual([422, true]);
    expect((await named("none")).status).toBe(406);
  });

  it("is cancelled once, with DELETE; what has ended stays as it is", async () => {
    const { handler, ends, aborted } = serve();
    const location = (await post(handler, "/api/job/long", LATER)).headers.get("location") ?? "";
    await until(() => ends.length === 1);
    for (let i = 0; i < 2; i++) {
      const cancelled = await ask(handler, location, { method: "DELETE" });
      expect([cancelled.status, ((await cancelled.json()) as Json).status]).toEqual([200, "cancelled"]);
    }
    await until(() => aborted.length === 1);
    const result = await ask(handler, `${location}/result`);
    expect([result.status, ((await result.json()) as Json).details]).toEqual([
      500,
      { reason: "task_cancelled" },
    ]);
    const done = (await post(handler, "/api/job/no", LATER)).headers.get("location") ?? "";
    await ask(handler, `${done}/result`, { headers: { prefer: "wait=30" } });
    const late = await ask(handler, done, { method: "DELETE" });
    expect([late.status, ((await late.json()) as Json).details]).toEqual([
      409,
      { reason: "task_settled", status: "failed" },
    ]);
  });

  it("is one of those that its owner lists, page by page, and that nobody else sees", async () => {
    const authenticate = (request: Request) => {
      const subject = request.headers.get("x-who");
      return subject === null ? undefined : { subject, scopes: subject === "ann" ? ["s"] : [] };
    };
    const { handler } = serve({ authenticate } as HttpHandlerOptions);
    const as = (who: string) => ({ headers: { "x-who": who } });
    const accepted = await post(handler, "/api/job/secret", { ...LATER, "x-who": "ann" });
    const location = accepted.headers.get("location") ?? "";
    const list = async (who: string): Promise<Json> =>
      ((await (await ask(handler, "/tasks", as(who))).json()) as Json).tasks;
    expect((await list("ann")).map(({ links }: Json) => links.self)).toEqual([location]);
    expect(await list("ben")).toEqual([]);
    const strange = await Promise.all([
      ask(handler, location, as("ben")),
      ask(handler, `${location}/result`, as("ben")),
      ask(handler, location, { method: "DELETE", ...as("ben") }),
      ask(handler, `/tasks/${"0".repeat(32)}`, as("ann")),
      ask(handler, "/tasks/x", as("ann")),
      ask(handler, "/tasks/x%2Fy", as("ann")),
    ]);
    const said = await Promise.all(
      strange.map(async (response) => {
        const { instance: _, ...problem } = (await response.json()) as Json;
        return JSON.stringify([response.status, problem]);
      }),
    );
    expect(new Set(said).size).toBe(1);
    expect((await post(handler, "/api/job/secret", { ...LATER, "x-who": "ben" })).status).toBe(403);
    expect((await ask(handler, "/tasks?cursor=7", as("ann"))).status).toBe(400);
    expect((await ask(handler, location, { method: "PUT", ...as("ann") })).status).toBe(405);
  });

  it("runs once for each idempotency key, however many tasks ask for it", async () => {
    const { handler, ends, runs } = serve();
    const keyed = { ...LATER, "idempotency-key": "k1" };
    const places = [];
    for (let i = 0; i < 2; i++)
      places.push((await post(handler, "/api/job/long", keyed)).headers.get("location"));
    await until(() => ends.length === 1);
    ends[0]?.({ found: 1 });
    for (const place of places) {
      const result = await ask(handler, `${place}/result`, { headers: { prefer: "wait=30" } });
      expect(await result.json()).toEqual({ found: 1 });
    }
    expect(runs).toEqual(["long"]);
  });

  it("is refused where there is no room, and outlives the request that made it", async () => {
    const { handler, ends } = serve({}, { limits: { tasks: 1 } });
    const leaving = new AbortController();
    const request = new Request("http://localhost/api/job/long", {
      method: "POST",
      headers: { "content-type": "application/json", ...LATER },
      body: "{}",
      signal: leaving.signal,
    });
    const location = (await handler.fetch(request)).headers.get("location") ?? "";
    leaving.abort();
    const full = await post(handler, "/api/job/long", LATER);
    expect([full.status, ((await full.json()) as Json).details]).toEqual([503, { reason: "too_many_tasks" }]);
    await until(() => ends.length === 1);
    ends[0]?.("still there");
    const result = await ask(handler, `${location}/result`, { headers: { prefer: "wait=30" } });
    expect(await result.json()).toBe("still there");
  });

  it("is waited for by no more requests than calls may run, and by none whose client has left", async () => {
    const { handler, ends } = serve({ limits: { calls: 1 } });
    const location = (await post(handler, "/api/job/long", LATER)).headers.get("location") ?? "";
    const leaving = new AbortController();
    const patient = { headers: { prefer: "wait=60" } };
    const left = ask(handler, `${location}/result`, { ...patient, signal: leaving.signal });
    for (let i = 0; i < 2; i++) expect((await ask(handler, `${location}/result`, patient)).status).toBe(202);
    leaving.abort();
    expect((await left).status).toBe(202);
    const asked = post(handler, "/api/job/no", { prefer: "respond-async, wait=60" });
    expect((await asked).status).toBe(422);
    const waiting = ask(handler, `${location}/result`, patient);
    await until(() => ends.length === 1);
    ends[0]?.("done");
    expect(await (await waiting).json()).toBe("done");
  });

  it("is not offered by a server without tasks, whose answers and document are as ever", async () => {
    const { handler } = serve({ tasks: undefined });
    expect((await post(handler, "/api/job/no", LATER)).status).toBe(422);
    expect((await ask(handler, "/tasks")).status).toBe(404);
    const { paths } = (await (await ask(handler, "/openapi.json")).json()) as Json;
    expect(Object.keys(paths).filter((path) => path.startsWith("/tasks"))).toEqual([]);
  });

  it("is described, and changes nothing about what is imported from the document", async () => {
    const [withTasks, without] = [serve(), serve({ tasks: undefined })];
    const importFrom = async ({ handler }: Served) => {
      const text = await (await ask(handler, "/openapi.json")).text();
      const source = await fromOpenApi(JSON.parse(text), { namespace: "own", baseUrl: "http://127.0.0.1:1" });
      return { document: JSON.parse(text), ids: [...source.operations].map(({ id }) => id).sort() };
    };
    const [more, less] = [await importFrom(withTasks), await importFrom(without)];
    expect(more.ids).toEqual(less.ids);
    expect(Object.keys(more.document.paths).filter((path) => path.startsWith("/tasks"))).toEqual([
      "/tasks",
      "/tasks/{id}",
      "/tasks/{id}/result",
    ]);
    expect(more.document.paths["/call"].post.responses["202"].headers.location).toBeDefined();
  });
});
