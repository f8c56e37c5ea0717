import { describe, expect, it } from "vitest";
import {
  type AccessControl,
  type AnyOperation,
  createClient,
  type Identity,
  isCallError,
  type OperationContext,
  OperationRegistry,
} from "../src/index.ts";
import { collect, query, stream } from "./make-operation.ts";

const ROLES = {
  anonymous: undefined,
  stranger: { subject: "stranger" },
  "half of all": { subject: "half", scopes: ["a"] },
  "all of all": { subject: "all", scopes: ["b", "a"] },
  "one of any": { subject: "any", scopes: ["d"] },
  owner: { subject: "owner", resources: { doc: ["d1"] } },
  "owner of another": { subject: "another", resources: { doc: ["d2"] } },
  "owner of nothing": { subject: "nothing", resources: { doc: [] } },
  "owner of all": { subject: "docs", resources: { doc: "*" } },
  administrator: { subject: "admin", scopes: ["a", "b", "c", "d"], resources: { doc: "*" } },
} satisfies Record<string, Identity | undefined>;

type Role = keyof typeof ROLES;

/** What a call comes to: the data, or the code it is refused with. */
type Outcome = "ok" | "UNAUTHENTICATED" | "ACCESS_DENIED" | "OPERATION_NOT_FOUND" | "EXECUTION_ERROR";

interface Rule {
  readonly access?: AccessControl;
  readonly internal?: true;
  /** Those the rule lets in when they ask for the document d1. */
  readonly admits: readonly Role[] | "everybody";
  /** Those who see it listed though asking for d1 is denied: another document would work. */
  readonly alsoLists?: readonly Role[];
}

const RULES = {
  open: { admits: "everybody" },
  signedIn: { access: {}, admits: Object.keys(ROLES).slice(1) as Role[] },
  allOf: { access: { scopes: { allOf: ["a", "b"] } }, admits: ["all of all", "administrator"] },
  anyOf: { access: { scopes: { anyOf: ["c", "d"] } }, admits: ["one of any", "administrator"] },
  owned: {
    access: { resource: { pointer: "/doc/id", type: "doc" } },
    admits: ["owner", "owner of all", "administrator"],
    alsoLists: ["owner of another"],
  },
  both: {
    access: { scopes: { allOf: ["a"] }, resource: { pointer: "/doc/id", type: "doc" } },
    admits: ["administrator"],
  },
  internal: { internal: true, admits: "everybody" },
  internalAllOf: {
    internal: true,
    access: { scopes: { allOf: ["a", "b"] } },
    admits: ["all of all", "administrator"],
  },
} satisfies Record<string, Rule>;

type RuleName = keyof typeof RULES;

const INPUT = { doc: { id: "d1" } };
const RELAY = { ...INPUT };

const targets = Object.entries(RULES).flatMap(([name, rule]: [string, Rule]): AnyOperation[] => {
  const { access, internal } = rule;
  const extra = { ...(access && { access }), ...(internal && { visibility: "internal" as const }) };
  const echo = async function* () {
    yield "ok";
  };
  return [query(`target.${name}`, () => "ok", extra), stream(`stream.${name}`, echo, extra)];
});

const FULL_AUTHORITY = { scopes: ["a", "b", "c", "d"], resources: { doc: "*" as const } };

/** Operations that call the target named in their metadata, for those who call them. */
const relays = (["execute", "env", "subscribe"] as const).flatMap((way) => {
  const handler = async (_: unknown, context: OperationContext) => {
    const name = String(context.metadata["target"]);
    switch (way) {
      case "execute":
        return context.execute(`target.${name}`, INPUT);
      case "env":
        return context.env["target"]?.[name]?.(INPUT);
      case "subscribe":
        return (await collect(context.subscribe(`stream.${name}`, INPUT)))[0];
    }
  };
  return [
    query(`relay.${way}`, handler),
    query(`relay.${way}-twice`, (_, { execute }) => execute(`relay.${way}`, RELAY)),
    query(`authority.${way}`, handler, { authority: FULL_AUTHORITY }),
  ];
});

const registry = new OperationRegistry([...targets, ...relays]);

interface Way {
  /** From within a handler, where internal operations can be reached. */
  readonly nested: boolean;
  /** Calls made with an authority of the operation's own: the caller does not matter. */
  readonly authority?: true;
  call(name: RuleName, identity: Identity | undefined): Promise<unknown>;
}

const relayed = (id: string) => (name: RuleName, identity: Identity | undefined) =>
  registry.execute(id, RELAY, { identity, metadata: { target: name, identity: ROLES.administrator } });

/** Every way in. A new one is one more entry, and gets every role and rule. */
const WAYS: Readonly<Record<string, Way>> = {
  execute: {
    nested: false,
    call: (name, identity) => registry.execute(`target.${name}`, INPUT, { identity }),
  },
  subscribe: {
    nested: false,
    call: (name, identity) => collect(registry.subscribe(`stream.${name}`, INPUT, { identity })),
  },
  "client.call": {
    nested: false,
    call: (name, identity) => createClient(registry, { identity }).call(`target.${name}`, INPUT),
  },
  "client.pages": {
    nested: false,
    call: (name, identity) => collect(createClient(registry, { identity }).pages(`target.${name}`, INPUT)),
  },
  "client.subscribe": {
    nested: false,
    call: (name, identity) =>
      collect(createClient(registry, { identity }).subscribe(`stream.${name}`, INPUT)),
  },
  "context.execute": { nested: true, call: relayed("relay.execute") },
  "context.execute, two levels down": { nested: true, call: relayed("relay.execute-twice") },
  "context.env": { nested: true, call: relayed("relay.env") },
  "context.env, two levels down": { nested: true, call: relayed("relay.env-twice") },
  "context.subscribe": { nested: true, call: relayed("relay.subscribe") },
  "context.execute with authority": { nested: true, authority: true, call: relayed("authority.execute") },
  "context.env with authority": { nested: true, authority: true, call: relayed("authority.env") },
  "context.subscribe with authority": { nested: true, authority: true, call: relayed("authority.subscribe") },
};

function expected(role: Role, rule: Rule, way: Way): Outcome {
  if (rule.internal && !way.nested) return "OPERATION_NOT_FOUND";
  const asking = way.authority ? "administrator" : role;
  if (rule.admits === "everybody" || rule.admits.includes(asking)) return "ok";
  // A handler that lets the refusal through: its caller may not even know of the operation that was called.
  if (rule.internal) return "EXECUTION_ERROR";
  return ROLES[asking] === undefined ? "UNAUTHENTICATED" : "ACCESS_DENIED";
}

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (thrown) {
    return isCallError(thrown) ? thrown.code : `not a CallError: ${thrown}`;
  }
}

const roles = Object.keys(ROLES) as Role[];
const rules = Object.entries(RULES) as [RuleName, Rule][];

describe.each(Object.entries(WAYS))("RE-10 access by %s", (_, way) => {
  it.each(roles)("RE-10 gives %s what the rules say", async (role) => {
    const found = await Promise.all(
      rules.map(async ([name]) => [name, await outcomeOf(way.call(name, ROLES[role]))]),
    );
    expect(found).toEqual(rules.map(([name, rule]) => [name, expected(role, rule, way)]));
  });
});

describe("RE-10 listing", () => {
  const listedFor = (identity: Identity | undefined, namespace: string) =>
    registry
      .list({ identity })
      .filter((operation) => operation.namespace === namespace)
      .map(({ name }) => name);

  const visibleTo = (role: Role) =>
    rules
      .filter(([, { admits, internal, alsoLists = [] }]) => {
        return !internal && (admits === "everybody" || [...admits, ...alsoLists].includes(role));
      })
      .map(([name]) => name as string)
      .sort();

  it.each(roles)("RE-10 shows %s exactly what some input could call", (role) => {
    expect(listedFor(ROLES[role], "target")).toEqual(visibleTo(role));
    expect(listedFor(ROLES[role], "stream")).toEqual(visibleTo(role));
    const env = registry.buildEnv({ identity: ROLES[role] });
    expect(Object.keys(env["target"] ?? {}).sort()).toEqual(visibleTo(role));
  });

  it("RE-10 agrees with calling: whoever is refused every document is not shown the operation", async () => {
    for (const role of roles) {
      const listed = listedFor(ROLES[role], "target");
      for (const [name] of rules) {
        const documents = ["d1", "d2"].map((id) => ({ doc: { id } }));
        const outcomes = documents.map((input) =>
          outcomeOf(registry.execute(`target.${name}`, input, { identity: ROLES[role] })),
        );
        expect([role, name, (await Promise.all(outcomes)).includes("ok")]).toEqual([
          role,
          name,
          listed.includes(name),
        ]);
      }
    }
  });
});

describe("RE-10 raising oneself", () => {
  const admin = ROLES.administrator;

  it("RE-10 is not done by anything in the input, the metadata or the options of a nested call", async () => {
    const smuggle = query("test.smuggle", (_, { execute }) =>
      execute("target.allOf", { ...INPUT, identity: admin }, {
        identity: admin,
        metadata: { identity: admin },
      } as never),
    );
    const own = new OperationRegistry([...targets, smuggle]);
    const input = { ...INPUT, identity: admin, scopes: ["a", "b"], authority: FULL_AUTHORITY };
    const options = { identity: ROLES.stranger, metadata: { identity: admin, scopes: ["a", "b"] } };
    expect(await outcomeOf(own.execute(smuggle, input, options))).toBe("ACCESS_DENIED");
    expect(await outcomeOf(own.execute("target.allOf", input, options))).toBe("ACCESS_DENIED");
  });

  it("RE-10 is not done by changing the identity while the call runs", async () => {
    const scopes = ["x"];
    const identity = { subject: "eve", scopes };
    const raise = query("test.raise", async (_, { execute }) => {
      scopes.push("a", "b");
      return execute("target.allOf", INPUT);
    });
    const own = new OperationRegistry([...targets, raise]);
    expect(await outcomeOf(own.execute(raise, INPUT, { identity }))).toBe("ACCESS_DENIED");
  });

  it("RE-10 is not done through an operation with authority: the calls it makes have it, its caller does not", async () => {
    const trusted = query(
      "test.trusted",
      async (_, { identity, execute }) => [identity?.subject, (await execute("test.untrusted")).data],
      { authority: { subject: "service", scopes: ["a"] } },
    );
    const untrusted = query("test.untrusted", (_, { identity }) => [identity?.subject, identity?.scopes]);
    const own = new OperationRegistry([trusted, untrusted]);
    const { data } = await own.execute(trusted, {}, { identity: { subject: "eve" } });
    expect(data).toEqual(["eve", ["service", ["a"]]]);
  });

  it("RE-10 is not done by a handler that changes its own operation's rules", async () => {
    const authority = { scopes: ["x"] };
    const access = { scopes: { allOf: ["a"] } };
    const target = query("test.target", () => "ok", { access });
    const caller = query(
      "test.caller",
      (_, { execute }) => {
        authority.scopes.push("a");
        access.scopes.allOf.length = 0;
        return execute(target);
      },
      { authority },
    );
    const own = new OperationRegistry([target, caller]);
    expect(await outcomeOf(own.execute(caller, {}))).toBe("ACCESS_DENIED");
  });
});
