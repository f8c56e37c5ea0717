import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GatewayConfig } from "../../src/gateway/index.ts";
import { freePort } from "../free-port.ts";
import {
  callTool,
  connectForTest,
  type GatewayProcess,
  type ServiceProcess,
  STDIO_SERVICE,
  startGateway,
  startService,
  writeConfig,
} from "../gateway-process.ts";
import { waybill } from "../installed-command.ts";

describe("sources that are broken", () => {
  let gateway: GatewayProcess;
  let guarded: ServiceProcess;
  let depot: ServiceProcess;
  let folder: string;
  const SECRETS = {
    KEY: "key-5f2e9c7b81d04a",
    TOKEN: "token-93bd0a1c66f2",
    CHILD: "child-0c4d77e1ab35f",
    HOLDER: "holder-2b6a9d10c3e8",
    BEARER: "bearer-77aa01c9d4e2",
    PASSWORD: "p@ss/w?rd&27c1=4e",
  };
  const bearer = { headers: { authorization: `Bearer ${SECRETS.HOLDER}` } };
  const config = async (): Promise<GatewayConfig> => {
    const dead = `http://127.0.0.1:${await freePort()}`;
    const script = (text: string) => ({ command: process.execPath, args: ["-e", text] });
    return {
      mcpServers: {
        near: STDIO_SERVICE,
        missing: { command: "no-such-command" },
        exits: {
          ...script("console.error('no licence for ' + process.env.CHILD); process.exit(3)"),
          env: { CHILD: "${CHILD}" },
        },
        dead: {
          url: `${dead}/mcp?key=${encodeURIComponent(SECRETS.PASSWORD)}`,
          headers: { "x-key": "${KEY}" },
        },
        refused: { url: guarded.url, headers: { "x-key": "${KEY}" }, bearer: "${BEARER}" },
        unset: { command: "node", env: { A: "${NOT_SET_ANYWHERE}" } },
      },
      openapi: {
        nowhere: { document: `${dead}/openapi.json`, headers: { "x-key": "${KEY}" } },
        garbage: { document: "garbage.json" },
        denied: { document: `${depot.url}/openapi.json`, auth: { bearer: "${BEARER}" } },
      },
      serve: { auth: { tokens: { ann: { token: "${HOLDER}", scopes: ["waybill:metrics"] } } } },
    };
  };

  beforeAll(async () => {
    [guarded, depot] = await Promise.all([
      startService("mcp-service.js", { KEY: "another-key-than-that" }),
      startService("http-service.js", { TOKEN: "another-token-than-that" }),
    ]);
    const written = writeConfig(await config());
    folder = written.path;
    writeFileSync(join(folder, "garbage.json"), '{ "openapi": "3.1.0", "info": 7 ');
    gateway = await startGateway(await config(), {
      env: SECRETS,
      files: { "garbage.json": '{ "openapi": "3.1.0", "info": 7 ' },
    });
  });
  afterAll(async () => {
    const ended = await gateway?.stop();
    await Promise.all([guarded?.kill(), depot?.kill()]);
    rmSync(folder, { recursive: true, force: true });
    expect(ended?.code).toBe(0);
  });

  const REASONS: Readonly<Record<string, RegExp>> = {
    missing: /no-such-command/,
    exits: /exited with code 3|code 3/,
    dead: /refused|ECONNREFUSED/,
    refused: /401|credentials|token/i,
    unset: /NOT_SET_ANYWHERE/,
    nowhere: /cannot be reached/,
    garbage: /garbage|JSON|line/i,
  };

  /** What callers hear: nothing that anybody else has written. */
  const CAUSES: Readonly<Record<string, string>> = {
    missing: "its program cannot be started.",
    exits: "its process exited with code 3.",
    dead: "it cannot be reached.",
    refused: "it refused the gateway's credentials.",
    unset: "it cannot work as it is configured.",
    nowhere: "it cannot be reached.",
    garbage: "it cannot be used.",
  };

  it("RE-30 leave the rest alone", async () => {
    expect(await gateway.post("near.add", { a: 1, b: 2 }, bearer)).toEqual({ status: 200, body: { sum: 3 } });
    const client = await connectForTest("SDK 1", gateway, bearer);
    expect((await callTool(client, "near.add", { a: 1, b: 2 })).structuredContent).toEqual({ sum: 3 });
    expect(await gateway.metric('waybill_source_up{source="near",kind="mcp"}', bearer)).toBe(1);
  });

  it.each(Object.keys(REASONS))(
    "RE-30 say over HTTP, MCP and in /metrics that %s is down, and why",
    async (name) => {
      const { status, body } = await gateway.post(`${name}.anything`, {}, bearer);
      expect(status).toBe(503);
      expect(body).toMatchObject({
        code: "UNAVAILABLE",
        detail: `The source "${name}" is down: ${CAUSES[name]}`,
      });
      const client = await connectForTest("SDK 2, 2025", gateway, bearer);
      const answer = await callTool(client, `${name}.anything`);
      expect(answer.isError).toBe(true);
      expect(answer.content[0]?.text).toContain(CAUSES[name]);
      const kind = name === "nowhere" || name === "garbage" ? "openapi" : "mcp";
      expect(await gateway.metric(`waybill_source_up{source="${name}",kind="${kind}"}`, bearer)).toBe(0);
    },
  );

  it("RE-30 fail a call that is refused, with what is wrong, and what the other side said apart from that", async () => {
    const { status, body } = await gateway.post("denied.add", { a: 1, b: 2 }, bearer);
    expect(status).toBeGreaterThanOrEqual(400);
    const { details, ...ours } = body as { code: string; details: { said: string } };
    expect(ours.code).toBeTypeOf("string");
    expect(JSON.stringify(ours)).not.toContain("is not it");
    expect(details.said).toContain("is not it");
  });

  it("RE-30 are diagnosed by doctor, each with a fix", async () => {
    const env = { ...SECRETS, WAYBILL_STATE_DIR: folder };
    const ran = await waybill(["doctor", "--json"], { cwd: folder, env });
    expect(ran.code).toBe(1);
    const { diagnoses } = JSON.parse(ran.stdout) as {
      diagnoses: { area: string; subject: string; status: string; message: string; fix?: string }[];
    };
    for (const [name, reason] of Object.entries(REASONS)) {
      const found = diagnoses.filter(({ subject, status }) => subject === name && status === "problem");
      expect([name, found.length]).toEqual([name, 1]);
      expect(found[0]?.message).toMatch(reason);
      expect(found[0]?.fix).toBeTypeOf("string");
    }
    expect(diagnoses.find(({ subject }) => subject === "near")?.status).toBe("ok");
  });

  it("RE-30 never show a secret, wherever one looks", async () => {
    const env = { ...SECRETS, WAYBILL_STATE_DIR: folder };
    const run = (...args: string[]) => waybill(args, { cwd: folder, env });
    const shown: Record<string, string> = {};
    const commands = [
      ["list"],
      ["list", "--json"],
      ["doctor"],
      ["doctor", "--json"],
      ["describe", "near.add"],
      ["call", "refused.add"],
      ["call", "exits.add"],
      ["call", "denied.leak"],
      ["call", "denied.leak", "--verbose"],
      ["call", "dead.add", "--json"],
    ];
    const runs = commands.map(async (args) => {
      const { stdout, stderr } = await run(...args);
      shown[args.join(" ")] = stdout + stderr;
    });
    await Promise.all(runs);
    for (const path of ["/", "/metrics", "/openapi.json", "/docs"]) {
      shown[path] = await (await fetch(gateway.url + path, bearer)).text();
    }
    for (const operation of ["exits.a", "dead.a", "refused.a", "denied.leak", "denied.add", "nowhere.a"]) {
      shown[operation] = JSON.stringify(await gateway.post(operation, { a: 1, b: 2 }, bearer));
    }
    for (const wrong of [`${SECRETS.HOLDER}x`, SECRETS.KEY]) {
      const headers = { authorization: `Bearer ${wrong}` };
      shown[`wrong ${wrong.length}`] = JSON.stringify(await gateway.post("near.add", {}, { headers }));
    }
    shown["stderr"] = gateway.stderr();
    shown["stdout"] = gateway.stdout();
    for (const [where, text] of Object.entries(shown)) {
      for (const [name, secret] of Object.entries(SECRETS)) {
        const spellings = [
          secret,
          encodeURIComponent(secret),
          Buffer.from(secret).toString("base64").replace(/=+$/, ""),
        ];
        for (const spelling of spellings) {
          expect([where, name, text.includes(spelling)]).toEqual([where, name, false]);
        }
      }
    }
  });
});
