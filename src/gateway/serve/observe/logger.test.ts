import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { CallError } from "../../../core/errors/errors.ts";
import { SecretMask } from "../../../core/secrets/secret-mask.ts";
import type { LogConfig } from "../../config/gateway-config.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";

const SECRET = "hunter2-hunter2-hunter2";

async function create(config: LogConfig, options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const secrets = new SecretMask();
  secrets.add(SECRET);
  const write = (line: string) => void lines.push(line);
  const log = await createLogger({ config, secrets, env: {}, isTerminal: false, write, ...options });
  return { log, lines };
}

describe.each(["json", "text"] as const)("createLogger, %s", (format) => {
  it("RE-30 never writes a secret, wherever it stands", async () => {
    const { log, lines } = await create({ format });
    const cause = new Error(`connect with ${SECRET}`);
    log.error(`failed with ${SECRET}`, {
      cause: new CallError("UNAVAILABLE", `no ${SECRET}`, { cause }),
      nested: { list: [`a ${SECRET} b`], [SECRET]: 1 },
      long: `${"x".repeat(8_190)}${SECRET}`,
      hidden: `${SECRET.slice(0, 5)}\u200b${SECRET.slice(5)}`,
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("hunter2");
    expect(lines[0]).toContain("failed with ***");
  });

  it("RE-30 masks secrets of a later config too", async () => {
    const { log, lines } = await create({ format });
    const later = new SecretMask();
    later.add("another-one-of-them");
    log.addSecrets(later);
    log.info(`${SECRET} another-one-of-them`);
    expect(lines[0]).toContain("*** ***");
  });

  it("RE-30 writes one line for each, with nothing a terminal acts on", async () => {
    const { log, lines } = await create({ format });
    log.warn("a\u001b[31mred\u0007\nb\r\u202ec\u009bd", { note: "x\u001b]0;t\u0007\u2028y\nz" });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u);
    expect(lines[0]?.endsWith("\n")).toBe(true);
  });

  it("RE-30 leaves out what matters less than asked for, and can be told otherwise", async () => {
    const { log, lines } = await create({ format, level: "warn" });
    log.info("no");
    log.warn("yes");
    log.setLevel("debug");
    log.debug("too");
    log.setLevel("silent");
    log.error("no");
    expect(lines.map((line) => /\b(no|yes|too)\b/.exec(line)?.[0])).toEqual(["yes", "too"]);
  });

  it("RE-30 X-6 bears with whatever is given, within bounds", async () => {
    const { log, lines } = await create({ format });
    const loop: Record<string, unknown> = {
      n: 1n,
      f: () => 1,
      u: undefined,
      d: new Date(Number.NaN),
      y: NaN,
    };
    loop["self"] = loop;
    const hostile = Object.defineProperty({}, "x", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    const many = Array.from({ length: 100_000 }, () => ({ a: 1 }));
    log.info("odd", { loop, hostile, many, level: "mine", bytes: new Uint8Array(9) });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.length).toBeLessThan(100_000);
    const throwing = await create(
      { format },
      {
        write: () => {
          throw new Error("EPIPE");
        },
      },
    );
    expect(() => throwing.log.info("x")).not.toThrow();
  });
});

describe("lines of the log", () => {
  it("RE-30 are JSON for programs, with time and level", async () => {
    const { log, lines } = await create({});
    log.info("call", { event: "call", durationMs: 1.5 });
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: "call",
      event: "call",
      durationMs: 1.5,
    });
  });

  it("RE-30 are for people on a terminal, in colours unless those are not wanted", async () => {
    const { log, lines } = await create({}, { isTerminal: true });
    log.info("hello", { a: "b c", n: 1 });
    expect(lines[0]).toContain("\u001b[");
    const plain = await create({}, { isTerminal: true, env: { NO_COLOR: "1" } });
    plain.log.info("hello", { a: "b c", n: 1 });
    expect(plain.lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}hello a="b c" n=1\n$/);
  });
});

describe.each(["json", "text"] as const)("a log that nobody reads, %s", (format) => {
  it("RE-30 holds up nobody, keeps a mebibyte, and counts what it dropped once it is read again", async () => {
    const seen: string[] = [];
    const waiting: (() => void)[] = [];
    let isRead = false;
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        seen.push(chunk.toString());
        if (isRead) done();
        else waiting.push(done);
      },
    });
    const log = await createLogger({
      config: { format },
      secrets: new SecretMask(),
      env: {},
      isTerminal: false,
      stream,
    });
    const line = "x".repeat(1_000);
    for (let n = 0; n < 5_000; n++) log.info(line);
    expect(stream.writableLength).toBeGreaterThan(1_048_576);
    expect(stream.writableLength).toBeLessThan(1_048_576 + 4_096);
    isRead = true;
    for (const done of waiting.splice(0)) done();
    await new Promise((resolve) => setImmediate(resolve));
    const kept = seen.length;
    log.info("after");
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen[kept]).toContain("lines of the log were dropped");
    expect(seen[kept]).toMatch(new RegExp(`dropped"?[=:]${5_000 - kept}\\b`));
    expect(seen[kept + 1]).toContain("after");
    stream.emit("error", new Error("EPIPE"));
  });
});
