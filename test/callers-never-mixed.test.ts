import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CallerConnections } from "../src/gateway/callers/caller-connections.ts";
import { CallerLogins } from "../src/gateway/callers/caller-logins.ts";
import { createGateway, loadConfigObject, serveGateway } from "../src/gateway/index.ts";
import { openMcpConnection } from "../src/mcp/client/mcp-connection.ts";
import { McpSource } from "../src/mcp/client/mcp-source.ts";
import { type EchoingUpstream, startEchoingUpstream } from "./echoing-upstream.ts";
import { runs } from "./runs.ts";

const CALLERS = ["ann", "bob", "cyd"] as const;
const SOURCES = ["api", "mcp"] as const;
const WAYS = ["http", "mcp"] as const;

type Caller = (typeof CALLERS)[number];
type SourceName = (typeof SOURCES)[number];
interface Change {
  readonly do: "login" | "logout" | "revoke";
  readonly who: Caller;
  readonly source: SourceName;
}
type Step =
  | {
      readonly do: "call";
      readonly who: Caller;
      readonly source: SourceName;
      readonly way: (typeof WAYS)[number];
    }
  | Change
  | { readonly do: "expire"; readonly who: Caller; readonly source: SourceName }
  | { readonly do: "list"; readonly who: Caller; readonly source: "mcp" }
  | { readonly do: "restart"; readonly source: SourceName }
  | { readonly do: "forget" };

const who = fc.constantFrom(...CALLERS);
const source = fc.constantFrom(...SOURCES);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("call" as const), who, source, way: fc.constantFrom(...WAYS) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom("login" as const, "expire" as const), who, source }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("logout" as const, "revoke" as const), who, source }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("list" as const), who, source: fc.constant("mcp" as const) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), source }) },
  { weight: 1, arbitrary: fc.constant({ do: "forget" } as const) },
);
/** What is done at once, one after the other. */
const turns = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 });

const tokenOf = (caller: string): string => `the-token-of-${caller}-1234`;
const identityOf = (caller: Caller) => ({ key: `token:${caller}`, subject: caller });

interface World {
  readonly upstream: EchoingUpstream;
  readonly errors: string[];
  run(steps: readonly Step[]): Promise<void>;
  close(): Promise<void>;
}

/** A gateway with two sources that are asked as each caller, and what is known of who is who. */
async function startWorld(): Promise<World> {
  const upstream = await startEchoingUpstream();
  const state = mkdtempSync(join(tmpdir(), "waybill-mixed-"));
  const policy = { cacheMs: 60_000, singleFlight: true };
  const auth = { person: { login: true as const, issuer: upstream.origin } };
  const loaded = await loadConfigObject(
    {
      mcpServers: {
        mcp: {
          url: `${upstream.origin}/mcp`,
          protocol: "2025",
          identity: { mode: "caller", connections: 2 },
          policy,
        },
      },
      openapi: { api: { document: `${upstream.origin}/openapi.json`, auth, identity: "caller", policy } },
      serve: {
        port: 0,
        auth: { tokens: Object.fromEntries(CALLERS.map((caller) => [caller, { token: tokenOf(caller) }])) },
      },
    },
    { baseDir: state, env: { WAYBILL_STATE_DIR: state, WAYBILL_KEYRING: "off" } },
  );
  const gateway = await createGateway(loaded);
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  const connections = new Map(
    await Promise.all(
      CALLERS.map(async (caller) => {
        const auth = { bearer: tokenOf(caller) };
        return [caller, await openMcpConnection({ url: `${server.url}/mcp`, auth })] as const;
      }),
    ),
  );
  /** The accounts that a caller has had at a source since the turn began, the present one last; undefined for none. */
  const accounts = new Map<string, (string | undefined)[]>();
  const errors: string[] = [];
  let logins = 0;
  const sourceOf = (name: SourceName) => {
    const found = gateway.logins.sources.get(name);
    if (found === undefined) throw new Error(`There is no source ${name}.`);
    return found;
  };
  const had = (caller: Caller, name: SourceName): (string | undefined)[] => {
    const key = `${caller} ${name}`;
    const found = accounts.get(key) ?? [undefined];
    accounts.set(key, found);
    return found;
  };
  const overHttp = async (caller: Caller, name: SourceName): Promise<string> => {
    const isApi = name === "api";
    const response = await fetch(`${server.url}/api/${name}/whoami`, {
      headers: { authorization: `Bearer ${tokenOf(caller)}` },
    });
    const body = (await response.json()) as Record<string, unknown>;
    if (!response.ok) return `! ${String(body["code"])}`;
    return isApi ? String(body["account"]) : textIn(body);
  };
  const overMcp = async (caller: Caller, name: SourceName): Promise<string> => {
    const answer = await connections
      .get(caller)
      ?.request("tools/call", { name: `${name}_whoami`, arguments: {} });
    const text = textIn(answer?.["content"]);
    if (answer?.["isError"] === true) return `! ${/\[(\w+)\]/.exec(text)?.[1] ?? text}`;
    return name === "api" ? String((answer?.["structuredContent"] as { account?: string })?.account) : text;
  };
  const act = async (given: Step, beside: readonly Step[]): Promise<void> => {
    switch (given.do) {
      case "call": {
        const said = await (given.way === "http" ? overHttp : overMcp)(given.who, given.source);
        const possible = had(given.who, given.source);
        const isRefusal = said.startsWith("! ") && (possible.includes(undefined) || mayFail(given, beside));
        const isRight = isRefusal || possible.includes(said);
        if (!isRight)
          errors.push(`${JSON.stringify(given)} said ${said}, and not ${JSON.stringify(possible)}`);
        return;
      }
      case "list": {
        const listed = await connections
          .get(given.who)
          ?.request("resources/list", {})
          .catch(() => ({}));
        // What stands in where a list fails may be of an earlier account, and is of the same caller.
        for (const [, account = ""] of JSON.stringify(listed).matchAll(/notes of ([\w/]+)/g)) {
          if (!account.startsWith(`${given.who}/`))
            errors.push(`${given.who} was listed what ${account} has`);
        }
        return;
      }
      case "login": {
        const account = `${given.who}/${given.source}/${++logins}`;
        had(given.who, given.source).push(account);
        await gateway.logins.keep(sourceOf(given.source), identityOf(given.who), upstream.logIn(account));
        return;
      }
      case "logout":
        had(given.who, given.source).push(undefined);
        await gateway.logins.end(sourceOf(given.source), identityOf(given.who));
        return;
      case "expire":
      case "revoke":
        for (const account of had(given.who, given.source)) {
          if (account !== undefined) upstream[given.do](account);
        }
        if (given.do === "revoke") had(given.who, given.source).push(undefined);
        return;
      case "restart":
        await gateway.sources.find(({ name }) => name === given.source)?.retry();
        return;
      case "forget":
        upstream.forget();
    }
  };
  return {
    upstream,
    errors,
    async run(steps) {
      await Promise.all(steps.map((given) => act(given, steps)));
      for (const caller of CALLERS) {
        for (const name of SOURCES) {
          // Of several changes that came at once, nobody knows which was the last.
          const [change, ...more] = steps.filter(
            (one) => isChange(one) && one.who === caller && one.source === name,
          );
          if (change === undefined || more.length > 0) continue;
          // The gateway is not told of what is revoked: until it asks, the caller may be given a result that is kept for this login.
          const possible = had(caller, name);
          const isKept = change.do === "revoke";
          accounts.set(`${caller} ${name}`, isKept ? [...new Set(possible)] : [possible.at(-1)]);
        }
      }
    },
    async close() {
      for (const connection of connections.values()) await connection.close();
      await server.close({ timeoutMs: 0 });
      await gateway.close();
      await upstream.close();
      rmSync(state, { recursive: true, force: true });
    },
  };
}

function isChange(step: Step): step is Change {
  return step.do === "login" || step.do === "logout" || step.do === "revoke";
}

/** Whether a call may fail for what is done beside it; it must be made as nobody else all the same. */
function mayFail({ who, source }: Extract<Step, { readonly do: "call" }>, beside: readonly Step[]): boolean {
  const callers = new Set(
    beside.flatMap((step) => (step.do === "call" && step.source === "mcp" ? [step.who] : [])),
  );
  // There are two connections.
  if (source === "mcp" && callers.size > 2) return true;
  return beside.some((step) => {
    if (step.do === "forget") return source === "mcp";
    if (step.source !== source) return false;
    return step.do === "restart" || (step.do === "expire" && step.who === who);
  });
}

/** The first text there is. */
function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return textIn(value[0]);
  const { text, content, data } = (value ?? {}) as Record<string, unknown>;
  return textIn(text ?? content ?? data ?? "");
}

/** Runs turns in a world of their own; gives what went wrong. */
async function wrongs(given: readonly (readonly Step[])[]): Promise<readonly string[]> {
  const world = await startWorld();
  try {
    for (const steps of given) await world.run(steps);
    return [...world.errors, ...world.upstream.mixed];
  } finally {
    await world.close();
  }
}

afterEach(() => vi.restoreAllMocks());

describe("callers of one gateway", () => {
  it("are never mixed, whatever is called, renewed, revoked and restarted at once", async () => {
    await fc.assert(
      fc.asyncProperty(turns, async (given) => {
        expect(await wrongs(given)).toEqual([]);
      }),
      runs(60),
    );
  }, 900_000);

  const LOGINS: readonly Step[] = CALLERS.flatMap((caller) =>
    SOURCES.map((name) => ({ do: "login", who: caller, source: name }) as const),
  );
  const CALLS: readonly Step[] = CALLERS.flatMap((caller) =>
    SOURCES.flatMap((name) => WAYS.map((way) => ({ do: "call", who: caller, source: name, way }) as const)),
  );

  it("would be caught when a connection were used for whoever calls next", async () => {
    let first: unknown;
    const { request } = CallerConnections.prototype;
    vi.spyOn(CallerConnections.prototype, "request").mockImplementation(function (
      this: CallerConnections,
      method,
      params,
      options = {},
    ) {
      first ??= options.call;
      return request.call(this, method, params, { ...options, call: first as typeof options.call });
    });
    expect((await wrongs([LOGINS, CALLS])).length).toBeGreaterThan(0);
  });

  it("would be caught when results were kept beyond the login that they were had with", async () => {
    vi.spyOn(CallerLogins.prototype, "nameOf").mockReturnValue("");
    expect((await wrongs([LOGINS, CALLS, LOGINS, CALLS])).length).toBeGreaterThan(0);
  });

  it("would be caught when a list were kept for whoever asks next", async () => {
    vi.spyOn(McpSource.prototype, "listsByCaller", "get").mockReturnValue(false);
    const lists: readonly Step[] = CALLERS.map((who) => ({ do: "list", who, source: "mcp" }));
    const gone: readonly Step[] = CALLERS.map((who) => ({ do: "revoke", who, source: "mcp" }));
    expect((await wrongs([LOGINS, lists, gone, lists])).length).toBeGreaterThan(0);
  });

  it("are not caught for what they do when all is well", async () => {
    expect(await wrongs([LOGINS, CALLS, LOGINS, CALLS])).toEqual([]);
  });
});
