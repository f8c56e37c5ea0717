import { expect, it } from "vitest";
import { atEnd } from "./gateway-sources.ts";
import { ADA, AGENT, heldCalls } from "./held-calls.ts";
import { browserSuite, openBrowser } from "./open-browser.ts";

browserSuite("the page of approvals in a browser", () => {
  it("signs a person in, shows a call whole, and takes their decision, on a narrow screen too", async () => {
    const { server, ran } = await heldCalls({
      policies: { "bank.*": { approve: { calls: "destructive", holdMs: 0 } } },
    });
    const call = async () =>
      (
        await fetch(`${server.url}/api/bank/pay`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${AGENT}` },
          body: JSON.stringify({ to: `<b>bob</b>${"x".repeat(300)}`, amount: 5 }),
        })
      ).status;
    expect(await call()).toBe(428);
    const browser = await openBrowser();
    atEnd(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
    await page.goto(`${server.url}/approvals`);
    await page.fill("input[name=token]", ADA);
    await page.click("button.go");
    await page.click("a.card");
    expect(await page.textContent("main")).toContain("<b>bob</b>");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await page.click("button.go");
    await page.waitForSelector("text=Decided, and not called again yet");
    expect(await call()).toBe(200);
    expect(ran).toHaveLength(1);
    await page.click("header button");
    await page.waitForSelector("input[name=token]");
  });
});
