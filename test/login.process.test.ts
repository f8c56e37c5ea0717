import { readdirSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type LoginFolder, openLoginFolder } from "./login-folder.ts";
import { type LoginWorld, startLoginWorld, walkLogin } from "./login-world.ts";

let world: LoginWorld;
let folder: LoginFolder;

beforeAll(async () => {
  world = await startLoginWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.set({ audience: "", accessSeconds: 600 });
  folder = openLoginFolder({
    mcpServers: { sdk: { url: `${world.issuer}/sdk` } },
    openapi: {
      people: {
        document: `${world.issuer}/openapi.json`,
        auth: { person: { login: true, scopes: ["read"] } },
      },
    },
    serve: { port: 0 },
  });
});
afterEach(() => folder.remove());

/** What the authorization server was asked for while something ran. */
async function during<T>(run: () => Promise<T>) {
  const before = await world.counts();
  const result = await run();
  const after = await world.counts();
  const counts = Object.entries(after).map(([name, count]) => [
    name,
    count - before[name as keyof typeof before],
  ]);
  return { result, counts: Object.fromEntries(counts) as typeof before };
}

describe("waybill login", () => {
  it.each([
    ["sdk", "sdk.hello", "hello"],
    ["people", "people.whoami", "ann"],
  ])("to %s lets %s be called, is renewed, and is revoked by logout", async (source, operation, said) => {
    const { stderr } = await folder.run(["list"]);
    expect(stderr).toMatch(new RegExp(`The source "${source}" waits for a login; run: .*login ${source}`));
    expect((await folder.run(["call", operation])).stderr).toContain("waits for a login");
    const { result, counts } = await during(() => folder.login(source));
    expect(result).toMatchObject({ code: 0, stderr: expect.not.stringContaining("cannot be renewed") });
    expect(result.stdout).toBe(`Logged in to "${source}" at ${world.issuer}, for read.\n`);
    expect(counts).toMatchObject({ authorization_code: 1, registered: 1 });
    expect((await folder.run(["call", operation])).stdout).toContain(said);
    await world.expire();
    const again = await during(() => folder.run(["call", operation]));
    expect(again.result.stdout).toContain(said);
    expect(again.counts).toMatchObject({ refresh_token: 1, authorization_code: 0 });
    const status = JSON.parse((await folder.run(["auth", "status", "--json"])).stdout);
    expect(status.logins.find(({ name }: { name: string }) => name === source)).toMatchObject({
      state: "logged-in",
      scope: "read",
      issuer: world.issuer,
      isRenewable: true,
      key: "file",
    });
    const out = await during(() => folder.run(["logout", source]));
    expect(out.result).toMatchObject({
      code: 0,
      stdout: `Logged out of "${source}"; its tokens are revoked.\n`,
    });
    expect(out.counts.revoked).toBe(1);
    expect((await folder.run(["call", operation])).stderr).toContain("waits for a login");
    expect((await folder.run(["doctor"])).stdout).toMatch(
      new RegExp(`login ${source}: It waits for a login`),
    );
  });

  it("takes the address that a browser elsewhere ended on, and no other", async () => {
    const command = folder.start(["login", "people", "--paste"]);
    const [address] = await command.says(/http:\/\/\S+/);
    const back = new URL(await walkLogin(address));
    await command.says(/Paste that address here/);
    command.write("not an address");
    await command.says(/That is no address/);
    command.write(`http://127.0.0.1:1/callback${back.search}`);
    await command.says(/another address than the one/);
    const forged = new URL(back);
    forged.searchParams.set("state", "forged");
    command.write(forged.href);
    await command.says(/That address is of another login/);
    command.write(back.href);
    expect(await command.ended).toMatchObject({ code: 0 });
    expect((await folder.run(["call", "people.whoami"])).stdout).toContain("ann");
  });

  it("shows a code for another device", async () => {
    const command = folder.start(["login", "people", "--device"]);
    const [, address = ""] = await command.says(/or open (http:\/\/\S+)/);
    expect(await walkLogin(address, "bob")).toMatch(/success/i);
    expect(await command.ended).toMatchObject({ code: 0 });
    expect((await folder.run(["call", "people.whoami"])).stdout).toContain("bob");
    expect((await world.counts()).device).toBe(1);
  });

  it("uses the client that the config names, and shows its secret nowhere", async () => {
    const canary = "canary-client-secret-of-known-client";
    folder.write({
      mcpServers: {
        sdk: {
          url: `${world.issuer}/sdk`,
          oauth: { login: true, clientId: "known-client", clientSecret: canary, issuer: world.issuer },
        },
      },
    });
    const { result, counts } = await during(() => folder.login("sdk"));
    expect(result).toMatchObject({ code: 0 });
    expect(counts).toMatchObject({ registered: 0, authorization_code: 1 });
    const called = await folder.run(["call", "sdk.hello"]);
    expect(called.stdout).toContain("hello");
    await world.expire();
    const again = await during(() => folder.run(["call", "sdk.hello"]));
    expect(again).toMatchObject({ result: { code: 0 }, counts: { refresh_token: 1 } });
    const out = await during(() => folder.run(["logout", "sdk"]));
    expect(out).toMatchObject({ result: { code: 0 }, counts: { revoked: 1 } });
    expect(JSON.stringify([result, called, again.result, out.result])).not.toContain(canary);
  });

  it("shows the document that describes the client, where the authorization server reads such, and registers none", async () => {
    const clientMetadataUrl = "https://clients.example/waybill.json";
    folder.write({
      mcpServers: { sdk: { url: `${world.issuer}/sdk`, oauth: { login: true, clientMetadataUrl } } },
    });
    const { result, counts } = await during(() => folder.login("sdk"));
    expect(result).toMatchObject({ code: 0 });
    expect(counts).toMatchObject({ registered: 0, documents: 1, authorization_code: 1 });
    expect((await folder.run(["call", "sdk.hello"])).stdout).toContain("hello");
    await world.expire();
    const again = await during(() => folder.run(["call", "sdk.hello"]));
    expect(again).toMatchObject({ result: { code: 0 }, counts: { refresh_token: 1 } });
  });

  it.each([
    ["failing", 3, /here\.$/m, /did not revoke the tokens/],
    ["none", 0, /its authorization server revokes no tokens/, /^$/],
  ] as const)("forgets a login whose tokens cannot be revoked: %s", async (revocation, code, out, err) => {
    await world.set({ revocation });
    onTestFinished(() => world.set({ revocation: "on" }));
    await folder.login("people");
    await folder.login("sdk");
    for (const source of ["people", "sdk"]) {
      const ended = await folder.run(["logout", source]);
      expect(ended).toMatchObject({
        code,
        stdout: expect.stringMatching(out),
        stderr: expect.stringMatching(err),
      });
    }
    expect((await folder.run(["call", "people.whoami"])).stderr).toContain("waits for a login");
    expect(readdirSync(folder.logins).filter((name) => name.endsWith(".login"))).toEqual([]);
  });

  it("asks for a scope that a call lacked, beside those it has", async () => {
    await folder.login("people");
    const refused = await folder.run(["call", "people.write"]);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('run "npx --no waybill login people"');
    const status = JSON.parse((await folder.run(["auth", "status", "--json"])).stdout);
    expect(status.logins[1]).toMatchObject({ state: "lacks-scope", wanted: "read write" });
    expect((await folder.login("people")).stdout).toContain("for read write");
    expect((await folder.run(["call", "people.write"])).stdout).toContain('"scope":"read write"');
  });

  it("is not for an API that is asked as each caller", async () => {
    const auth = { person: { login: true } };
    folder.write({
      openapi: { people: { document: `${world.issuer}/openapi.json`, auth, identity: "caller" } },
      serve: { auth: { tokens: { ann: { token: "0123456789abcdef" } } } },
    });
    const { code, stderr } = await folder.run(["login", "people"]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("is asked as each caller");
    expect(JSON.parse((await folder.run(["auth", "status", "--json"])).stdout)).toMatchObject({ logins: [] });
    expect((await folder.run(["list"])).stdout).toContain("people.whoami");
    expect((await folder.run(["call", "people.whoami"])).stderr).toContain("is asked as each caller");
  });

  it("is picked up by a gateway that runs", async () => {
    const gateway = folder.start(["serve", "--log-format", "json"]);
    const [, address = ""] = await gateway.says(/"url":"(http:[^"]+)"/);
    const call = async (operation: string) => {
      const response = await fetch(`${address}/call`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ operation, input: {} }),
      });
      return { status: response.status, text: await response.text() };
    };
    expect((await call("people.whoami")).status).toBe(401);
    await folder.login("people");
    expect(await call("people.whoami")).toMatchObject({ status: 200, text: expect.stringContaining("ann") });
    await folder.login("sdk");
    await expect.poll(() => call("sdk.hello")).toMatchObject({ status: 200 });
    await folder.run(["logout", "people"]);
    expect((await call("people.whoami")).status).toBe(401);
  });

  it("is asked for by a gateway that starts, for each source that waits, with the command that does it", async () => {
    const gateway = folder.start(["serve"]);
    for (const source of ["people", "sdk"]) {
      await gateway.says(
        new RegExp(`The source "${source}" waits for a login; run: .*login ${source}$`, "m"),
      );
    }
  });

  it("ends with a message when the browser never comes back", async () => {
    const late = await folder.run(["login", "sdk", "--no-open", "--timeout", "1500ms"]);
    expect(late).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/Nobody came back from the login in time/),
    });
  });
});

describe("twelve processes", () => {
  it.each([
    ["an API", "people", "people.whoami"],
    ["an MCP server", "sdk", "sdk.hello"],
  ])("that find one token of %s expired redeem it once, and all go on", async (_what, source, operation) => {
    await folder.login(source);
    await world.expire();
    const { result, counts } = await during(() =>
      Promise.all(Array.from({ length: 12 }, () => folder.run(["call", operation]))),
    );
    expect(result.map(({ code }) => code)).toEqual(Array.from({ length: 12 }, () => 0));
    expect(counts).toMatchObject({ refresh_token: 1, refused: 0 });
  });
});
