import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { atEnd } from "./gateway-sources.ts";
import { ADA, AGENT, heldCalls } from "./held-calls.ts";
import { until } from "./make-operation.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
/** Attempts of one request to the webhook: `approvals.attempts` of docs/security.md, which test/limits-document.test.ts holds. */
const ATTEMPTS = 3;
const SHORT = { "bank.*": { approve: { calls: "destructive", holdMs: 0 } } } as const;

const call = (url: string, to = "bob") =>
  fetch(`${url}/api/bank/pay`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${AGENT}` },
    body: JSON.stringify({ to, amount: 5 }),
  });

/** A browser as far as the page needs one: it keeps a cookie, and sends forms. */
function browser(url: string) {
  let cookie = "";
  const take = (answer: Response): Response => {
    const set = answer.headers.get("set-cookie");
    if (set !== null) cookie = set.split(";")[0] ?? "";
    return answer;
  };
  return {
    get: async (path: string) => take(await fetch(`${url}${path}`, { headers: { cookie } })),
    async send(
      path: string,
      form: Readonly<Record<string, string>>,
      headers: Readonly<Record<string, string>> = {},
    ) {
      const body = new URLSearchParams(form);
      const all = { ...FORM, cookie, origin: url, "sec-fetch-site": "same-origin", ...headers };
      return take(await fetch(`${url}${path}`, { method: "POST", headers: all, body, redirect: "manual" }));
    },
  };
}

const csrfIn = (html: string): string => /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? "";

describe("the page of approvals", () => {
  it("shows a call whole to somebody who has signed in and may decide, and takes their decision", async () => {
    const { server, waiting, ran } = await heldCalls({ policies: SHORT });
    const hostile = "<script>\u202e";
    expect((await call(server.url, hostile)).status).toBe(428);
    const { id } = await waiting();
    const { get, send } = browser(server.url);
    expect(await (await get("/approvals")).text()).toContain("Sign in");
    expect((await send("/approvals/sign-in", { token: "nobody's token at all" })).status).toBe(403);
    const signedIn = await send("/approvals/sign-in", { token: ADA });
    expect(signedIn.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Lax$/);
    expect(await (await get("/approvals")).text()).toContain(`href="approvals/${id}"`);
    const shown = await get(`/approvals/${id}`);
    expect(shown.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = await shown.text();
    for (const part of [
      "agent (token of the config)",
      "bank.pay",
      "Pays somebody.",
      "The words of",
      "&lt;script&gt;\\u202e",
    ])
      expect(html).toContain(part);
    expect(html).not.toContain("<script");
    const csrf = csrfIn(html);
    expect((await send(`/approvals/${id}`, { csrf, decision: "approve" })).status).toBe(303);
    expect((await call(server.url, hostile)).status).toBe(200);
    expect(ran).toHaveLength(1);
  });

  it.each<readonly [string, Readonly<Record<string, string>>, string | undefined]>([
    ["of another origin", { origin: "https://evil.example" }, undefined],
    ["of another site", { "sec-fetch-site": "cross-site" }, undefined],
    ["without the token of the page", {}, ""],
    ["with the token of another visit", {}, "x".repeat(43)],
  ])("takes no form %s", async (_, headers, forged) => {
    const { server, waiting } = await heldCalls({ policies: SHORT });
    await call(server.url);
    const { id } = await waiting();
    const { get, send } = browser(server.url);
    await send("/approvals/sign-in", { token: ADA });
    const csrf = forged ?? csrfIn(await (await get(`/approvals/${id}`)).text());
    const answer = await send(`/approvals/${id}`, { csrf, decision: "approve" }, headers);
    expect(answer.status).toBe(403);
    expect((await waiting()).state).toBe("waiting");
  });

  it("shows those who may not decide their own calls alone, and takes nothing from them", async () => {
    const { server, waiting } = await heldCalls({ policies: SHORT });
    await call(server.url);
    const { id } = await waiting();
    const { get, send } = browser(server.url);
    await send("/approvals/sign-in", { token: AGENT });
    const html = await (await get(`/approvals/${id}`)).text();
    expect(html).not.toContain("Approve once");
    const answer = await send(`/approvals/${id}`, { csrf: csrfIn(html), decision: "approve" });
    expect(answer.status).toBe(403);
    expect((await waiting()).state).toBe("waiting");
  });

  it("is there where a policy holds calls, and not where the config says no", async () => {
    const off = await heldCalls({ policies: SHORT, approvals: { page: false } });
    expect(
      (await fetch(`${off.server.url}/approvals`, { headers: { authorization: `Bearer ${ADA}` } })).status,
    ).toBe(404);
  });

  it("answers programs with JSON, and those alone who show a token", async () => {
    const { server, waiting } = await heldCalls({ policies: SHORT });
    await call(server.url);
    const { id } = await waiting();
    const ask = (path: string, token: string, init: RequestInit = {}) =>
      fetch(`${server.url}/approvals/api${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      });
    expect((await fetch(`${server.url}/approvals/api`)).status).toBe(401);
    expect(await (await ask("", ADA)).json()).toMatchObject({ approvals: [{ id, operation: "bank.pay" }] });
    const body = JSON.stringify({ decision: "deny", comment: "no" });
    expect((await ask(`/${id}`, AGENT, { method: "POST", body })).status).toBe(403);
    expect(await (await ask(`/${id}`, ADA, { method: "POST", body })).json()).toMatchObject({
      approval: { state: "denied", decision: { by: { subject: "ada" }, via: "command", comment: "no" } },
    });
    expect((await ask(`/${id}`, ADA, { method: "POST", body: "[" })).status).toBe(400);
    expect((await ask(`/${id}`, ADA, { method: "POST", body: "x".repeat(20_000) })).status).toBe(413);
    expect((await call(server.url)).status).toBe(403);
  });
});

describe("the webhook of approvals", () => {
  const SECRET = "a secret of at least 32 characters";

  async function hooked(answer: (response: ServerResponse, at: number) => void) {
    const told: { body: string; signature: string }[] = [];
    const hook = createServer((request: IncomingMessage, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        told.push({ body, signature: String(request.headers["waybill-signature"]) });
        answer(response, told.length);
      });
    });
    await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
    atEnd(() => hook.closeAllConnections());
    atEnd(() => hook.close());
    const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
    const held = await heldCalls({
      policies: SHORT,
      approvals: { webhook: { url, secret: SECRET, timeoutMs: 1_000 } },
    });
    return { ...held, told };
  }

  it("is told of a call, signed, and decides at an address that works once", async () => {
    const { server, told, ran } = await hooked((response) => void response.end("ok"));
    await call(server.url);
    await until(() => told.length === 1);
    const { body = "", signature = "" } = told[0] ?? {};
    const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
    expect(createHmac("sha256", SECRET).update(`${seconds}.${body}`).digest("hex")).toBe(mac);
    const asked = JSON.parse(body);
    expect(asked).toMatchObject({
      event: "approval.requested",
      operation: "bank.pay",
      caller: { subject: "agent" },
    });
    const { url } = asked.answer;
    // Looking at it decides nothing: programs that look through messages do that too.
    expect(await (await fetch(url)).text()).toContain("Approve once");
    const decide = () =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ decision: "approve", by: "carol" }),
      });
    expect(await (await decide()).json()).toMatchObject({ state: "approved" });
    expect((await decide()).status).toBe(404);
    expect((await fetch(`${url.slice(0, -1)}_`)).status).toBe(404);
    expect((await call(server.url)).status).toBe(200);
    expect(ran).toHaveLength(1);
  });

  it.each<readonly [string, (response: ServerResponse, at: number) => void, number]>([
    ["fails", (response) => void response.writeHead(500).end(), ATTEMPTS],
    [
      "sends it elsewhere",
      (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      1,
    ],
    ["answers without end", (response) => void response.writeHead(200).write("x".repeat(65_536)), 1],
    ["never answers", () => {}, ATTEMPTS],
  ])("is asked a few times where it %s, and holds nobody up", async (_, answer, times) => {
    const { server, told, decide } = await hooked(answer);
    expect((await call(server.url)).status).toBe(428);
    await decide();
    expect((await call(server.url)).status).toBe(200);
    await until(() => told.length === times);
  });
});
