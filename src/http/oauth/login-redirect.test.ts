import { request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { type LoginRedirect, listenForRedirect, pastedMisfit } from "./login-redirect.ts";

let redirect: LoginRedirect;
afterEach(async () => {
  await redirect?.close();
});

const never = new AbortController().signal;

function get(address: string, headers: Record<string, string> = {}, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    request(address, { headers, method }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end();
  });
}

describe("where a browser comes back to", () => {
  it("is a port of the loopback interface, and hears the login that waits", async () => {
    redirect = await listenForRedirect();
    expect(redirect.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    const coming = redirect.wait("mine", never);
    expect(await get(`${redirect.url}?code=abc&state=mine`)).toBe(200);
    expect(await coming).toBe(`${redirect.url}?code=abc&state=mine`);
  });

  it("refuses forged states, which do not end the login that waits", async () => {
    redirect = await listenForRedirect();
    const coming = redirect.wait("mine", never);
    for (const query of [
      "?code=x&state=forged",
      "?code=x",
      "?code=x&state=",
      "?error=access_denied&state=min",
    ])
      expect(await get(`${redirect.url}${query}`)).toBe(400);
    expect(await get(`${redirect.url}?code=abc&state=mine`)).toBe(200);
    expect(await coming).toContain("code=abc");
  });

  it("hears one answer alone: the same address again changes nothing", async () => {
    redirect = await listenForRedirect();
    const coming = redirect.wait("mine", never);
    expect(await get(`${redirect.url}?code=first&state=mine`)).toBe(200);
    expect(await get(`${redirect.url}?code=first&state=mine`)).toBe(400);
    expect(await get(`${redirect.url}?code=second&state=mine`)).toBe(400);
    expect(await coming).toContain("code=first");
  });

  it("is served under its own name, path and method alone", async () => {
    redirect = await listenForRedirect();
    const coming = redirect.wait("mine", never);
    const { port } = new URL(redirect.url);
    const query = "?code=abc&state=mine";
    expect(await get(`${redirect.url}${query}`, { host: `evil.example:${port}` })).toBe(403);
    expect(await get(`${redirect.url}${query}`, { host: `localhost:${port}` })).toBe(403);
    expect(await get(`http://127.0.0.1:${port}/elsewhere${query}`)).toBe(404);
    expect(await get(`${redirect.url}${query}`, {}, "POST")).toBe(404);
    expect(await get(`${redirect.url}${query}`)).toBe(200);
    await coming;
  });

  it("ends with its signal", async () => {
    redirect = await listenForRedirect();
    const gone = new AbortController();
    const coming = redirect.wait("mine", gone.signal);
    gone.abort(new Error("too late"));
    await expect(coming).rejects.toThrow("too late");
  });

  it("is the address that a registered client has, where there is one", async () => {
    const first = await listenForRedirect();
    const { port } = new URL(first.url);
    await first.close();
    redirect = await listenForRedirect(`http://127.0.0.1:${port}/own/path`);
    expect(redirect.url).toBe(`http://127.0.0.1:${port}/own/path`);
    await expect(listenForRedirect(redirect.url)).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});

describe("an address that is pasted", () => {
  it.each([
    ["http://127.0.0.1:5000/callback?code=a&state=mine", undefined],
    ["nothing", /no address/],
    ["http://127.0.0.1:5001/callback?code=a&state=mine", /another address/],
    ["https://127.0.0.1:5000/callback?code=a&state=mine", /another address/],
    ["http://127.0.0.1:5000/other?code=a&state=mine", /another address/],
    ["http://evil.example/callback?code=a&state=mine", /another address/],
    ["http://127.0.0.1:5000/callback?code=a&state=other", /another login/],
    ["http://127.0.0.1:5000/callback?code=a", /another login/],
  ])("is compared with the one that is waited for: %s", (text, said) => {
    const misfit = pastedMisfit(text, "http://127.0.0.1:5000/callback", "mine");
    if (said === undefined) expect(misfit).toBeUndefined();
    else expect(misfit).toMatch(said);
  });
});
