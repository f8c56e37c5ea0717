import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { lastWordsIn } from "../channels/stdio-transport.ts";
import { type McpSourceOptions, openMcpSource } from "./from-mcp.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(answer: RequestListener): Promise<URL> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

async function failure(options: unknown): Promise<Error & { code: string; details?: unknown }> {
  return (await rejection(
    openMcpSource({ namespace: "files", ...(options as object) } as McpSourceOptions),
  )) as never;
}

describe("a first connection that fails", () => {
  it("Mcp: says that there is no such command, and where arguments go", async () => {
    const missing = await failure({ command: "no-such-command-at-all" });
    expect(missing.message).toContain("there is no such command");
    expect(missing.message).not.toContain("args");
    const line = await failure({ command: "node x.js" });
    expect(line.message).toContain("command is the program alone, what follows it goes into args.");
  });

  it("X-11 says that a person would have to sign in, where the server names where", async () => {
    const url = await listen((_, response) => {
      const where = "https://auth.example/.well-known/oauth-protected-resource";
      response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${where}"` }).end();
    });
    expect(await failure({ url })).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringMatching(/: it wants a sign-in \(OAuth\), and no auth is set up for it\.$/),
    });
    const refused = await failure({ url, headers: { authorization: "Bearer mine-12345" } });
    expect(refused.message).not.toContain("sign-in");
  });

  it.each(["wr0ng-token", () => "wr0ng-token"])(
    "X-11 says that the token was refused, and what the server said of it in its words",
    async (bearer) => {
      const url = await listen((_, response) => {
        response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' });
        response.end("\u001b[31mthe token wr0ng-token is expired");
      });
      const error = await failure({ url, auth: { bearer } });
      expect(error).toMatchObject({ code: "UNAUTHENTICATED" });
      expect(error.message).toBe(
        `MCP server "files" (${url.host}) could not be asked for a connection: it refused the token; it may be wrong or expired.`,
      );
      expect(error.details).toEqual({ said: 'Bearer error="invalid_token" the token *** is expired' });
      expect(inspect(error)).not.toContain("wr0ng-token");
    },
  );

  it("Mcp: says what to check where no token was given, the path is wrong, or nothing listens", async () => {
    const without = await failure({ url: await listen((_, response) => response.writeHead(401).end()) });
    expect(without.code).toBe("UNAUTHENTICATED");
    expect(without.message).toContain("give it auth, or check the headers");
    const url = await listen((_, response) => response.writeHead(404).end());
    const astray = await failure({ url: String(url) });
    expect(astray.message).toContain(`(${url.host})`);
    expect(astray.message).toContain("HTTP status 404; check the path of the url");
    await new Promise((resolve) => servers.at(-1)?.close(resolve));
    const refused = await failure({ url });
    expect(refused.message).toContain(`(${url.host})`);
    expect(refused.message).toContain("nothing listens there; check that the server runs");
  });
});

describe("last words", () => {
  it.each([
    ["", ""],
    ["one\ntwo\n", "two"],
    [
      "x.js:1\nthrow e\n^\n\nError: no key\n    at x.js:1 {\n  code: 1\n}\n\nNode.js v20.1.0\n",
      "Error: no key",
    ],
    ["Error: no key\nnpm notice\nnpm notice New version of npm available!\n", "Error: no key"],
    [
      "npm error code E404\nnpm error 404 Not Found - GET /x - Not found\nnpm error 404\nnpm error 404  'x@*' is not in this registry.\n" +
        "npm error 404\nnpm error 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git folder.\n" +
        "npm error A complete log of this run can be found in: /home/x/.npm/_logs/x.log\n",
      "npm error 404 'x@*' is not in this registry.",
    ],
    ["npm error code E404\n", "npm error code E404"],
    ["  all indented\n  twice\n", "twice"],
    [`${"y".repeat(199)}`, "y".repeat(199)],
    [`${"y".repeat(200)}`, `${"y".repeat(199)}…`],
  ])("Mcp: are the last line that says something (%#)", (text, words) => {
    expect(lastWordsIn(text)).toBe(words);
  });
});
