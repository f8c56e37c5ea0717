import { get, type IncomingMessage } from "node:http";
import { expect, it } from "vitest";
import { openInspector, soon } from "../inspector-page.ts";
import { callOverHttp } from "../inspector-project.ts";
import { browserSuite } from "../open-browser.ts";
import { useInspectorProject } from "../use-inspector-project.ts";

const PAGE_BYTES = 60_000;
const WHOLE_BYTES = 70_000;
const ZIPPED_BYTES = 60 * 1_024;

/** What the gateway sends for a path, as it travels. */
async function sent(
  url: string,
  encoding: string,
): Promise<{ bytes: number; headers: IncomingMessage["headers"]; status?: number }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers: { "accept-encoding": encoding } }, resolve).once("error", reject);
  });
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  return { bytes, headers: response.headers, status: response.statusCode ?? 0 };
}

browserSuite("the inspector's page", () => {
  const used = useInspectorProject();

  it("RE-30 opens without an error, without breaking its own policy, and asks nobody but its gateway", async () => {
    const inspector = await openInspector(used.browser, used.served.url, { path: "/inspect" });
    const { page } = inspector;
    await page.getByText("live", { exact: false }).first().waitFor();
    for (const view of ["Operations", "Resources", "Calls", "Sources", "Decode", "Home"] as const) {
      await inspector.view(view);
      await soon(() => page.title()).toBe(`${view} · post office · Waybill inspector`);
      expect(
        await page.getByRole("link", { name: view, exact: true }).first().getAttribute("aria-current"),
      ).toBe("page");
    }
    expect(inspector.faults).toEqual([]);
    expect(inspector.elsewhere).toEqual([]);
    expect(inspector.moves).toEqual([]);
    await inspector.close();
  });

  it("RE-30 sends less than 60,000 bytes for the page as it opens, under a policy without inline script", async () => {
    const inspector = await openInspector(used.browser, used.served.url, { path: "/inspect" });
    await inspector.page.getByText("live", { exact: false }).first().waitFor();
    const files = await inspector.page.evaluate(() => [
      location.pathname,
      ...performance
        .getEntriesByType("resource")
        .map(({ name }) => new URL(name).pathname)
        .filter((path) => !path.startsWith("/inspect/api/")),
    ]);
    const all = (encoding: string) =>
      Promise.all([...new Set(files)].map((path) => sent(`${used.served.url}${path}`, encoding)));
    // What a browser says of itself here, and what those say that ask over plain HTTP from elsewhere.
    const answers = await all("gzip, deflate, br, zstd");
    const sum = (sized: typeof answers) => sized.reduce((bytes, one) => bytes + one.bytes, 0);
    const [total, zipped] = [sum(answers), sum(await all("gzip"))];
    console.log(`the page in ${answers.length} files: ${total} bytes, ${zipped} by gzip`);
    expect(answers.length).toBeGreaterThanOrEqual(3);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(total).toBeLessThan(PAGE_BYTES);
    expect(zipped).toBeLessThan(ZIPPED_BYTES);
    // The other views are loaded when they are opened; all of them together have an end, too.
    for (const view of ["Operations", "Resources", "Calls", "Sources", "Decode"] as const) {
      await inspector.view(view);
      await soon(() => inspector.page.title()).toContain(view);
    }
    await inspector.page.getByRole("textbox").first().waitFor();
    const loaded = await inspector.page.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .map(({ name }) => new URL(name).pathname)
        .filter((path) => path.startsWith("/inspect/assets/")),
    );
    files.push(...loaded);
    const whole = sum(await all("gzip, deflate, br, zstd"));
    console.log(`with every view: ${whole} bytes`);
    expect(whole).toBeGreaterThan(total);
    expect(whole).toBeLessThan(WHOLE_BYTES);
    const policy = String(answers[0]?.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'self'(;|$)/);
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(answers[0]?.headers["x-content-type-options"]).toBe("nosniff");
    await inspector.close();
  });

  it("RE-30 says that the gateway is lost, and goes on by itself once it is there again", async () => {
    const inspector = await openInspector(used.browser, used.served.url, { path: "/inspect/#/calls" });
    const { page } = inspector;
    const badge = page.getByRole("banner").getByRole("status");
    await soon(() => badge.textContent()).toContain("live");
    await used.served.stop("SIGKILL");
    await soon(() => badge.textContent()).toContain("lost");
    used.served = await used.project.open(Number(new URL(used.served.url).port));
    await soon(() => badge.textContent()).toContain("live");
    const answer = await callOverHttp(used.served.url, "post.echo", { text: "after" });
    expect(JSON.stringify(answer)).toContain("after");
    await page.getByText("post.echo").first().waitFor();
    expect(inspector.moves).toEqual([]);
    await inspector.close();
  });

  it("RE-30 keeps the chosen theme and view when the page is loaded again", async () => {
    const inspector = await openInspector(used.browser, used.served.url, { path: "/inspect/#/sources" });
    const { page } = inspector;
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.getByLabel("Theme").selectOption("light");
    const light = await ground();
    await page.getByLabel("Theme").selectOption("dark");
    expect(await ground()).not.toBe(light);
    const dark = await ground();
    await page.reload();
    await page.getByLabel("Theme").waitFor();
    expect(await ground()).toBe(dark);
    expect(new URL(page.url()).hash).toBe("#/sources");
    await inspector.close();
  });
});
