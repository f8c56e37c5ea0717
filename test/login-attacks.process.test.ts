import { createDecipheriv } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LoginFolder, openLoginFolder } from "./login-folder.ts";
import { type LoginWorld, startLoginWorld, walkLogin } from "./login-world.ts";

let world: LoginWorld;
let folder: LoginFolder;

beforeAll(async () => {
  world = await startLoginWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.set({ audience: "", metadata: null });
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

/** Walks through a login whose browser comes back on another address than it was sent to. */
async function loginWith(change: (back: URL) => void, source = "people") {
  const command = folder.start(["login", source, "--paste"]);
  const [address] = await command.says(/http:\/\/\S+/);
  const back = new URL(await walkLogin(address));
  change(back);
  await command.says(/Paste that address here/);
  command.write(back.href);
  return await command.ended;
}

const call = (operation: string) => folder.run(["call", operation]);

describe("a login whose answer is", () => {
  it.each<[string, (back: URL) => void, RegExp]>([
    [
      "of another authorization server",
      (back) => back.searchParams.set("iss", "https://evil.example"),
      /another authorization server/,
    ],
    [
      "of nobody, where the authorization server names itself",
      (back) => back.searchParams.delete("iss"),
      /another authorization server/,
    ],
    [
      "a code that it never gave",
      (back) => back.searchParams.set("code", "forged"),
      /refused with invalid_grant/,
    ],
    ["without a code", (back) => back.searchParams.delete("code"), /without a code/],
    [
      "a refusal",
      (back) => {
        back.searchParams.delete("code");
        back.searchParams.set("error", "access_denied");
      },
      /refused with access_denied/,
    ],
  ])("%s logs nobody in, and leaves the login before as it was", async (_, change, said) => {
    await folder.login("people", { who: "first" });
    const failed = await loginWith(change);
    expect(failed).toMatchObject({ code: 3, stdout: "" });
    expect(failed.stderr).toMatch(said);
    expect((await call("people.whoami")).stdout).toContain("first");
  });

  it("a code that was used before logs nobody in", async () => {
    let code = "";
    expect(
      await loginWith((back) => {
        code = back.searchParams.get("code") ?? "";
      }),
    ).toMatchObject({ code: 0 });
    const replayed = await loginWith((back) => back.searchParams.set("code", code), "sdk");
    expect(replayed).toMatchObject({ code: 3, stderr: expect.stringContaining("invalid_grant") });
    expect((await call("sdk.hello")).stderr).toContain("waits for a login");
  });
});

describe("a login at a server whose metadata", () => {
  it.each([
    [
      "is that of another server",
      { resource: "https://other.example/mcp" },
      /metadata of the server is that of another server/,
    ],
    [
      "names an authorization server that names another",
      { authorization_servers: ["ISSUER/elsewhere"] },
      /names another issuer/,
    ],
  ])("%s logs nobody in", async (_, metadata, said) => {
    const own = { resource: `${world.issuer}/sdk`, authorization_servers: [world.issuer], ...metadata };
    await world.set({ metadata: JSON.parse(JSON.stringify(own).replaceAll("ISSUER", world.issuer)) });
    const failed = await folder.run(["login", "sdk", "--no-open", "--timeout", "20s"]);
    expect(failed.code).toBe(3);
    expect(failed.stderr).toMatch(said);
    expect(readdirSync(folder.state)).not.toContain("logins");
  });
});

describe("two logins at once", () => {
  it("each end by themselves, and the last one counts", async () => {
    const commands = [0, 1].map(() => folder.start(["login", "people", "--no-open"]));
    const backs: string[] = [];
    for (const [at, command] of commands.entries()) {
      const [address] = await command.says(/http:\/\/\S+/);
      backs.push(await walkLogin(address, `person${at}`));
    }
    // The answer to one of them, at the address of the other, is a forged one there.
    const mixed = new URL(backs[0] as string);
    mixed.port = new URL(backs[1] as string).port;
    expect((await fetch(mixed)).status).toBe(400);
    for (const [at, back] of backs.entries()) {
      expect((await fetch(back)).status).toBe(200);
      expect(await commands[at]?.ended).toMatchObject({ code: 0 });
    }
    expect((await call("people.whoami")).stdout).toContain("person1");
  });
});

describe("a login that", () => {
  it("cannot be renewed any more is asked for again, and no other is touched", async () => {
    await folder.login("people");
    await folder.login("sdk");
    const before = join(folder.path, "before");
    cpSync(folder.logins, before, { recursive: true });
    await world.expire();
    expect((await call("people.whoami")).code).toBe(0);
    // The refresh token that was used already is used again, which ends its grant.
    const [file = ""] = readdirSync(before).filter((name) => name.startsWith("people."));
    cpSync(join(before, file), join(folder.logins, file));
    await world.expire();
    expect((await call("people.whoami")).stderr).toContain("waits for a login");
    expect((await folder.run(["list"])).stderr).toContain('The source "people" waits for a login');
    expect((await call("sdk.hello")).stdout).toContain("hello");
    await folder.login("people");
    expect((await call("people.whoami")).stdout).toContain("ann");
  });

  it("is for another audience is refused by the server, renewed once, and not asked for for ever", async () => {
    await world.set({ audience: "https://other.example/api" });
    await folder.login("people");
    const before = await world.counts();
    const refused = await call("people.whoami");
    expect(refused.code).not.toBe(0);
    expect((await world.counts()).refresh_token - before.refresh_token).toBe(1);
  });

  it("was made at another address is not shown to the one that the source moved to", async () => {
    await folder.login("people");
    await folder.login("sdk");
    const other = await startLoginWorld();
    try {
      folder.write({
        mcpServers: { sdk: { url: `${other.issuer}/sdk` } },
        openapi: {
          people: {
            document: `${world.issuer}/openapi.json`,
            baseUrl: `${other.issuer}/api`,
            auth: { person: { login: true } },
          },
        },
      });
      for (const operation of ["sdk.hello", "people.whoami"])
        expect((await call(operation)).stderr).toContain("waits for a login");
    } finally {
      await other.close();
    }
  });

  it.each([
    ["damaged", (path: string) => writeFileSync(path, "{", { mode: 0o600 }), "is damaged"],
    ["readable by others", (path: string) => chmodSync(path, 0o644), "its mode must be 600"],
    [
      "of another key",
      (path: string) =>
        writeFileSync(join(path, "..", "key"), `${Buffer.alloc(32, 1).toString("base64url")}\n`),
      "another key",
    ],
  ])(
    "is kept in a file that is %s counts as none, says why, and can be made again",
    async (_, change, said) => {
      await folder.login("people");
      const [file = ""] = readdirSync(folder.logins).filter((name) => name.startsWith("people."));
      change(join(folder.logins, file));
      expect((await call("people.whoami")).stderr).toContain("waits for a login");
      expect((await folder.run(["auth", "status"])).stdout).toMatch(/cannot be read/);
      expect((await folder.run(["auth", "status", "--json"])).stdout).toContain(said);
      expect(await folder.login("people")).toMatchObject({ code: 0 });
      expect((await call("people.whoami")).stdout).toContain("ann");
    },
  );
});

describe("tokens", () => {
  it("stand in no log, list, page, metric, error or file", async () => {
    const gateway = folder.start(["serve", "--inspect", "--log-format", "json", "--log-level", "debug"]);
    const [, address = ""] = await gateway.says(/"url":"(http:[^"]+)"/);
    const said: unknown[] = [await folder.login("people"), await folder.login("sdk")];
    const secrets = readSecrets(["people", "sdk"]);
    expect(secrets.length).toBeGreaterThanOrEqual(4);
    const get = async (path: string) => said.push(await (await fetch(`${address}${path}`)).text());
    const post = async (operation: string) => {
      const body = JSON.stringify({ operation, input: {} });
      const headers = { "content-type": "application/json" };
      said.push(await (await fetch(`${address}/call`, { method: "POST", headers, body })).text());
    };
    for (const operation of ["people.whoami", "people.write", "sdk.hello"]) await post(operation);
    await world.expire();
    for (const operation of ["people.whoami", "sdk.hello"]) await post(operation);
    for (const path of [
      "/metrics",
      "/operations",
      "/openapi.json",
      "/ready",
      "/inspect",
      "/inspect/api/sources",
    ])
      await get(path);
    for (const args of [
      ["list", "--sources", "--json"],
      ["doctor", "--json"],
      ["auth", "status", "--json"],
      ["call", "people.write", "--verbose"],
    ])
      said.push(await folder.run(args, { WAYBILL_DEBUG: "1" }));
    const all = [...secrets, ...readSecrets(["people", "sdk"])];
    said.push(await folder.run(["logout", "people"]));
    gateway.kill("SIGINT");
    said.push(await gateway.ended);
    for (const name of readdirSync(folder.state, { recursive: true, withFileTypes: true })) {
      if (name.isFile()) said.push(readFileSync(join(name.parentPath, name.name), "utf8"));
    }
    const text = JSON.stringify(said);
    for (const secret of all) expect(text.includes(secret)).toBe(false);
  });
});

/** The secrets that are kept, read with the key that lies beside them. */
function readSecrets(names: readonly string[]): string[] {
  const key = Buffer.from(readFileSync(join(folder.logins, "key"), "utf8"), "base64url");
  return names.flatMap((name) => {
    const [file = ""] = readdirSync(folder.logins).filter((each) => each.startsWith(`${name}.`));
    const { iv, tag, data } = JSON.parse(readFileSync(join(folder.logins, file), "utf8"));
    const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(iv, "base64url"));
    decipher.setAAD(Buffer.from(`waybill login 1 ${file}`)).setAuthTag(Buffer.from(tag, "base64url"));
    const text = decipher.update(Buffer.from(data, "base64url"), undefined, "utf8") + decipher.final("utf8");
    return Array.from(text.matchAll(/"(?:access|refresh)_token":"([^"]+)"/g), ([, token = ""]) => token);
  });
}

describe("the key", () => {
  /** A program of the name `secret-tool`, which keeps one secret in a file beside it, or never answers. */
  function installKeyring(script: string): Record<string, string> {
    const bin = join(folder.path, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, "secret-tool"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { PATH: `${bin}:${process.env["PATH"]}`, WAYBILL_KEYRING: "" };
  }
  const KEEPS = `file="$(dirname "$0")/secret"
case "$1" in
  store) cat > "$file" ;;
  lookup) [ -f "$file" ] && cat "$file" ;;
esac`;

  it.runIf(process.platform === "linux")(
    "is kept by the keyring of the system where that answers",
    async () => {
      const env = installKeyring(KEEPS);
      const command = folder.start(["login", "people", "--no-open"], env);
      const [address] = await command.says(/http:\/\/\S+/);
      await fetch(await walkLogin(address));
      expect(await command.ended).toMatchObject({ code: 0 });
      expect(readdirSync(folder.logins)).not.toContain("key");
      expect((await folder.run(["auth", "status"], env)).stdout).toContain("kept by the secret service");
      expect((await folder.run(["call", "people.whoami"], env)).stdout).toContain("ann");
      rmSync(join(folder.path, "bin/secret"));
      expect((await folder.run(["auth", "status", "--json"], env)).stdout).toContain("The key is gone");
    },
  );

  it.runIf(process.platform === "linux")("is kept in a file where the keyring never answers", async () => {
    const env = installKeyring("exec sleep 600");
    const command = folder.start(["login", "people", "--no-open"], env);
    const [address] = await command.says(/http:\/\/\S+/);
    await fetch(await walkLogin(address));
    expect(await command.ended).toMatchObject({ code: 0 });
    expect(readdirSync(folder.logins)).toContain("key");
    expect((await folder.run(["call", "people.whoami"], env)).stdout).toContain("ann");
  });
});
