import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openFolder } from "../installed-command.ts";
import { ROOT } from "../run-node.ts";
import { terminalSuite } from "../run-on-terminal.ts";
import { CTRL_C, openTerminalProject, seenOn } from "../terminal-project.ts";

const { run, freshFile, remove } = openTerminalProject();

afterAll(remove);

async function isGone(pid: number): Promise<boolean> {
  const end = performance.now() + 60_000;
  while (performance.now() < end) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

terminalSuite("Ctrl-C", () => {
  const server = join(ROOT, "test/mcp-children/waits.js");
  const mcp = (marker: string, manner = "") => `${process.execPath} ${server} ${marker} ${manner}`;
  const pid = (marker: string) => Number(readFileSync(marker, "utf8"));

  it("ends a call and the server it waits for", async () => {
    const marker = freshFile();
    const ran = await run(["call", "wait", "--mcp", mcp(marker)], {
      steps: [{ file: marker, type: CTRL_C }],
    });
    expect([ran.code, ran.signal, ran.left], ran.screen).toEqual([130, null, []]);
    expect(seenOn(ran.screen)).toBe("^C");
    expect(await isGone(pid(marker))).toBe(true);
  });

  it("that reaches the command alone ends the server as well, however stubborn", async () => {
    const marker = freshFile();
    const ran = await run(["call", "wait", "--mcp", mcp(marker, "stubborn")], {
      pipes: ["stdout"],
      steps: [{ file: marker, signal: "SIGINT" }],
    });
    expect([ran.code, ran.stdout], ran.screen).toEqual([130, ""]);
    expect(seenOn(ran.screen)).toBe("");
    expect(await isGone(pid(marker))).toBe(true);
  });

  it("pressed twice ends at once, and leaves no stubborn server behind", async () => {
    const marker = freshFile();
    const steps = [
      { file: marker, type: CTRL_C },
      { seen: "\\^C", type: CTRL_C },
    ];
    const ran = await run(["call", "wait", "--mcp", mcp(marker, "stubborn")], { steps });
    expect([ran.code, ran.left], ran.screen).toEqual([130, []]);
    expect(seenOn(ran.screen)).toBe("^C^C");
    expect(await isGone(pid(marker))).toBe(true);
  });

  it("ends a local call under a spinner, which is erased", async () => {
    const ran = await run(["call", "post.held", `file=${freshFile()}`], {
      pipes: ["stdout"],
      steps: [{ seen: "calling post\\.held", type: CTRL_C }],
    });
    expect([ran.code, ran.stdout], ran.screen).toEqual([130, ""]);
    expect(seenOn(ran.screen).replace("^C", "")).toBe("");
  });

  it("ends a stream; every line that was written is whole", async () => {
    const ran = await run(["call", "post.ticks", "--json"], { steps: [{ seen: '"tick":3', type: CTRL_C }] });
    expect(ran.code).toBe(130);
    const lines = seenOn(ran.screen).replace("^C", "").split("\n").filter(Boolean);
    expect(lines.slice(0, 3)).toEqual(['{"tick":1}', '{"tick":2}', '{"tick":3}']);
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty("tick");
  });

  it("ends what reads from the terminal", async () => {
    const runs = await Promise.all([
      run(["decode", "-"], { steps: [{ seen: "Ctrl-D", type: CTRL_C }] }),
      run(["call", "post.held", "-"], { steps: [{ seen: "Ctrl-D", type: CTRL_C }] }),
    ]);
    for (const { code, screen, left } of runs) {
      expect([code, left], screen).toEqual([130, []]);
      expect(seenOn(screen)).not.toMatch(/Error|abort/i);
    }
  });

  it("at a question of init writes nothing", async () => {
    const empty = openFolder();
    const ran = await run(["init"], {
      cwd: empty.path,
      env: { HOME: empty.state },
      steps: [{ seen: "What should be mounted", type: CTRL_C }],
    });
    expect([ran.code, ran.left], ran.screen).toEqual([130, []]);
    expect(ran.screen).toContain("Nothing was written.");
    expect(readdirSync(empty.path)).toEqual([]);
    empty.remove();
  });

  it("stops serve in good order", async () => {
    const ran = await run(["serve", "--port", "0"], {
      steps: [{ seen: "Try in another terminal[\\s\\S]*\\n\\r?\\n", type: CTRL_C }],
    });
    expect([ran.code, ran.left], ran.screen).toEqual([0, []]);
    const text = seenOn(ran.screen);
    expect(text).toMatch(/stopping signal=SIGINT\n.* stopped$/);
    // Every line is the log's or that of what is announced; none is half a spinner's.
    expect(text).not.toMatch(/sources\d\d:\d\d/);
  });

  it("pressed twice ends serve with a call under way at once", async () => {
    const started = freshFile();
    const port = await freePort();
    const serving = run(["serve", "--port", String(port)], {
      steps: [
        { file: started, type: CTRL_C },
        { seen: "stopping", type: CTRL_C },
      ],
    });
    const body = JSON.stringify({ operation: "post.held", input: { file: freshFile(), started } });
    const call = await callWhenUp(`http://127.0.0.1:${port}/call`, body);
    const ran = await serving;
    expect([ran.code, ran.left], ran.screen).toEqual([130, []]);
    expect(seenOn(ran.screen)).not.toMatch(/ stopped$/);
    expect(existsSync(started)).toBe(true);
    expect(call).toBe("cut");
  });
});

async function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/** Posts again and again until somebody listens; says how the answer ended. */
async function callWhenUp(url: string, body: string): Promise<string> {
  const end = performance.now() + 90_000;
  const headers = { "content-type": "application/json" };
  while (performance.now() < end) {
    try {
      const answer = await fetch(url, { method: "POST", headers, body });
      return await answer.text();
    } catch (thrown) {
      const { code } = ((thrown as Error).cause ?? {}) as { code?: string };
      if (code !== "ECONNREFUSED") return "cut";
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return "nobody listens";
}
