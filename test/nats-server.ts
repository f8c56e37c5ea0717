import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { describe, it } from "vitest";

/** What a broker of its own may be told. */
export interface NatsServerOptions {
  /** Stores streams in a folder that lasts until `stop`. @default false */
  readonly jetstream?: boolean;
  /** Text of a configuration file. @default none */
  readonly config?: string;
  /** @default a free one */
  readonly port?: number;
}

/** A broker that belongs to one test. */
export interface NatsServer {
  readonly url: string;
  readonly port: number;
  /** Stops it where it is, all of it: nothing is answered after this until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** Ends it in good order and removes what it stored. */
  stop(): Promise<void>;
  /** Ends it at once, as a crash would; `restart` brings it back with what it stored. */
  kill(): Promise<void>;
  /** Ends it in good order, if it runs, and starts it again on the same port with what it stored. */
  restart(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;

/** Ports that no system gives away by itself: one of them is still free when its broker starts, and when it starts again. */
const PORTS = { first: 20_000, count: 12_000 };

/** Debian puts servers where only the path of an administrator looks. */
const FOLDERS = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin"];

/** Finds the program, or says that there is none. */
function findBinary(): string | undefined {
  return FOLDERS.map((folder) => join(folder, "nats-server")).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Describes tests that need a broker; without one they are skipped aloud, and fail where `CI` is "true". */
export function natsSuite(title: string, body: () => void): void {
  if (findBinary() !== undefined) {
    describe(title, body);
  } else if (process.env["CI"] === "true") {
    it(`${title}: nats-server is installed`, () => {
      throw new Error("No nats-server was found on the PATH; install the package nats-server.");
    });
  } else {
    describe.skip(`${title} (skipped: no nats-server on the PATH)`, body);
  }
}

/** Starts a broker on a loopback port and waits until it takes connections. */
export async function startNats(options: NatsServerOptions = {}): Promise<NatsServer> {
  const folder = mkdtempSync(join(tmpdir(), "waybill-nats-"));
  const port = options.port ?? (await findFreePort());
  const args = ["-a", "127.0.0.1", "-p", String(port)];
  if (options.jetstream === true) args.push("-js", "-sd", join(folder, "store"));
  if (options.config !== undefined) {
    writeFileSync(join(folder, "nats.conf"), options.config);
    args.push("-c", join(folder, "nats.conf"));
  }
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  let running = await launch(args, port).catch((thrown: unknown) => {
    removeFolder();
    throw thrown;
  });
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    async pause() {
      running.kill("SIGSTOP");
      while (!isPaused(running.pid ?? 0)) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    resume: () => void running.kill("SIGCONT"),
    async stop() {
      await end(running, "SIGTERM");
      removeFolder();
    },
    kill: () => end(running, "SIGKILL"),
    async restart() {
      await end(running, "SIGTERM");
      running = await launch(args, port);
    },
  };
}

async function findFreePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + randomInt(PORTS.count);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

async function launch(args: readonly string[], port: number): Promise<ChildProcess> {
  const binary = findBinary();
  if (binary === undefined) throw new Error("No nats-server was found on the PATH.");
  const child = spawn(binary, args, { stdio: ["ignore", "ignore", "pipe"] });
  // Tests that are cut short leave no broker behind.
  const endWithTests = (): void => void child.kill("SIGKILL");
  process.once("exit", endWithTests);
  child.once("exit", () => process.removeListener("exit", endWithTests));
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-4_000);
  });
  const until = performance.now() + READY_WITHIN_MS;
  while (!(log.includes("Server is ready") && (await accepts(port)))) {
    if (child.exitCode !== null || performance.now() > until) {
      await end(child, "SIGKILL");
      throw new Error(`nats-server did not start:\n${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return child;
}

/** A signal is on its way for a while: a thread on another core may still say something. */
function isPaused(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  // Elsewhere than on Linux nobody can tell.
  if (!existsSync(threads)) return true;
  try {
    return readdirSync(threads).every((thread) => {
      const stat = readFileSync(join(threads, thread, "stat"), "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
    });
  } catch {
    // A thread has ended meanwhile.
    return false;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill(signal);
    // A test may have stopped it.
    child.kill("SIGCONT");
  });
}
