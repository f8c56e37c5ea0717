import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openInspector, soon } from "../inspector-page.ts";
import { type InspectorProject, openInspectorProject } from "../inspector-project.ts";
import type { ServedFolder } from "../installed-folder.ts";
import { browserSuite, openBrowser } from "../open-browser.ts";

const TOKENS = { ada: "ada-0123456789abcdef", bob: "bob-0123456789abcdef" };
const API = [
  ["GET", "hello"],
  ["GET", "live"],
  ["GET", "sources"],
  ["GET", "operations"],
  ["GET", "operation?id=post.echo"],
  ["GET", "call?seq=1"],
  ["POST", "sources/retry"],
  ["POST", "validate"],
  ["POST", "run"],
  ["POST", "answer"],
  ["POST", "formats"],
  ["POST", "decode"],
] as const;

browserSuite("the inspector where callers have to say who they are", () => {
  let browser: Browser;
  let project: InspectorProject;
  let served: ServedFolder;
  beforeAll(async () => {
    const tokens = { ada: { token: TOKENS.ada, scopes: ["waybill:inspect"] }, bob: { token: TOKENS.bob } };
    project = openInspectorProject({ serve: { auth: { tokens } } });
    [browser, served] = await Promise.all([openBrowser(), project.open()]);
  });
  afterAll(async () => {
    await browser?.close();
    await project?.remove();
  });

  const callAs = async (holder: keyof typeof TOKENS, text: string): Promise<void> => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${TOKENS[holder]}` };
    const body = JSON.stringify({ operation: "post.echo", input: { text } });
    const response = await fetch(`${served.url}/call`, { method: "POST", headers, body });
    expect(response.status).toBe(200);
  };
  const enter = async (token: string) => {
    const inspector = await openInspector(browser, served.url, { path: "/inspect/#/calls" });
    await inspector.page.getByLabel("Token").fill(token);
    await inspector.page.getByRole("button", { name: "Enter" }).click();
    return inspector;
  };

  it.each(API)("RE-30 answers nothing to %s %s without a token", async (method, path) => {
    const posted = method === "POST" ? { headers: { "content-type": "application/json" }, body: "{}" } : {};
    const response = await fetch(`${served.url}/inspect/api/${path}`, { method, ...posted });
    expect(response.status).toBe(401);
    expect(await response.text()).not.toMatch(/post\.|depot|server\.mjs/);
  });

  it("RE-30 asks for a token, says when it is wrong, and lets the right one in", async () => {
    const { page, close, elsewhere } = await enter("wrong-0123456789abcdef");
    await page.getByRole("alert").getByText("The gateway does not know this token.").waitFor();
    expect(await page.getByLabel("Token").getAttribute("aria-invalid")).toBe("true");
    await page.getByLabel("Token").fill(TOKENS.ada);
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("button", { name: "ada · leave" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "ada · leave" }).click();
    await page.getByRole("button", { name: "Enter" }).waitFor();
    expect(elsewhere).toEqual([]);
    await close();
  });

  it("RE-30 shows the calls of others to an operator, and their own alone to anybody else", async () => {
    const [ada, bob] = await Promise.all([enter(TOKENS.ada), enter(TOKENS.bob)]);
    for (const { page } of [ada, bob]) await page.getByRole("button", { name: /· leave/ }).waitFor();
    await callAs("ada", "of Ada");
    await callAs("bob", "of Bob");
    const rowsOf = async ({ page }: typeof ada): Promise<string> =>
      (await page.getByRole("main").textContent()) ?? "";
    await soon(() => rowsOf(ada)).toMatch(/ada[\s\S]*bob|bob[\s\S]*ada/);
    await soon(() => rowsOf(bob)).toContain("post.echo");
    expect(await rowsOf(bob)).not.toContain("ada");
    await bob.view("Sources");
    await bob.page.getByText("depot").first().waitFor();
    expect(await rowsOf(bob)).not.toContain("server.mjs");
    expect(await bob.page.getByRole("button", { name: /Reconnect|Try now/ }).count()).toBe(0);
    await ada.view("Sources");
    await ada.page
      .getByText(/server\.mjs/)
      .first()
      .waitFor();
    await Promise.all([ada.close(), bob.close()]);
  });

  it("RE-30 opens by the address that waybill inspect prints, which loses its token at once", async () => {
    const inspect = project.stream(["inspect", "--port", "0"]);
    await soon(() => inspect.stdout()).toMatch(/\n$/);
    const address = inspect.stdout().trim();
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/inspect\/#token=[\w-]{22,}$/);
    const { origin, pathname, hash } = new URL(address);
    expect((await fetch(`${origin}/inspect/api/hello`)).status).toBe(401);
    expect((await fetch(`${origin}/mcp`, { method: "POST" })).status).toBe(401);
    const inspector = await openInspector(browser, origin, { path: pathname + hash });
    await inspector.page.getByRole("region", { name: "Addresses" }).waitFor();
    expect(inspector.page.url()).not.toContain("token");
    expect(await inspector.page.evaluate(() => history.length)).toBeLessThanOrEqual(2);
    await inspector.page.reload();
    await inspector.page.getByRole("region", { name: "Addresses" }).waitFor();
    expect(inspect.stderr()).not.toContain(hash.slice("#token=".length));
    expect(inspector.faults).toEqual([]);
    await inspector.close();
  });
});
