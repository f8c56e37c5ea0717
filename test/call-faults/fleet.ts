import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { sleep } from "../make-operation.ts";
import { HARDENED, HARDENED_FLAGS } from "../run-node.ts";
import { type History, parseHistory } from "./history.ts";

const READY_WITHIN_MS = 120_000;

/** What a process of the run does. */
export type Role = "worker" | "client";

const PROGRAMS: Readonly<Record<Role, string>> = {
  worker: fileURLToPath(new URL("worker-process.ts", import.meta.url)),
  client: fileURLToPath(new URL("client-process.ts", import.meta.url)),
};

/** One process of the run, from its start to its end. */
export interface Member {
  readonly role: Role;
  /** Of its history. */
  readonly name: string;
  readonly child: ChildProcess;
  /** Whether it takes or makes calls by now. */
  isReady: boolean;
  isStopped: boolean;
  isKilled: boolean;
  /** Calls it has in flight, as it said last. */
  underWay: number;
}

/** The processes of one run, all of which end with it. */
export class Fleet {
  readonly members: Member[] = [];
  /** Processes that ended though nobody had killed them or told them to. */
  readonly deaths: string[] = [];
  readonly #folder: string;
  readonly #url: string;
  #isFinishing = false;

  constructor(folder: string, url: string) {
    this.#folder = folder;
    this.#url = url;
  }

  /** Makes a program of each role that needs nothing around it. */
  async build(): Promise<void> {
    for (const [role, input] of Object.entries(PROGRAMS)) {
      const bundle = await rolldown({ input, platform: "node", logLevel: "silent" });
      await bundle.write({ file: join(this.#folder, `${role}.mjs`), format: "esm", codeSplitting: false });
      await bundle.close();
    }
  }

  /** Those that neither ended nor were killed. */
  running(role: Role): Member[] {
    return this.members.filter((member) => member.role === role && isAlive(member));
  }

  /** Calls in flight in all clients together. */
  get underWay(): number {
    return this.running("client").reduce((sum, { underWay }) => sum + underWay, 0);
  }

  start(role: Role, ...args: readonly string[]): Member {
    const name = `${role}-${this.members.length}.jsonl`;
    const flags = HARDENED ? HARDENED_FLAGS : [];
    const program = join(this.#folder, `${role}.mjs`);
    const child = spawn(process.execPath, [...flags, program, this.#url, join(this.#folder, name), ...args], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const state = { isReady: false, isStopped: false, isKilled: false, underWay: 0 };
    const member: Member = { role, name, child, ...state };
    child.on("message", (message: { ready?: true; underWay?: number }) => {
      if (message.ready === true) member.isReady = true;
      if (message.underWay !== undefined) member.underWay = message.underWay;
    });
    this.#watchEnd(member);
    this.members.push(member);
    return member;
  }

  #watchEnd(member: Member): void {
    const { child, name } = member;
    const endWithTests = (): void => void child.kill("SIGKILL");
    process.once("exit", endWithTests);
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-2_000);
    });
    child.once("close", (code, signal) => {
      process.removeListener("exit", endWithTests);
      if (!member.isKilled && !(this.#isFinishing && code === 0))
        this.deaths.push(`${name} ended by itself (${code ?? signal}): ${said}`);
    });
  }

  kill(member: Member): void {
    member.isKilled = true;
    member.child.kill("SIGKILL");
  }

  stop(member: Member): void {
    member.isStopped = true;
    member.child.kill("SIGSTOP");
  }

  resume(member: Member): void {
    member.isStopped = false;
    member.child.kill("SIGCONT");
  }

  /** Waits until everybody who was started works. */
  async allReady(): Promise<void> {
    const until = performance.now() + READY_WITHIN_MS;
    for (;;) {
      const missing = this.members.filter((member) => isAlive(member) && !member.isReady);
      if (missing.length === 0) return;
      if (performance.now() > until)
        throw new Error(`Not ready in time: ${missing.map(({ name }) => name).join(", ")}.`);
      await sleep(20);
    }
  }

  /** Has the clients write down that nothing is broken any more. */
  callItCalm(): void {
    for (const { child } of this.running("client")) child.send("calm", () => {});
  }

  /** Lets the clients see their calls to the end; those that do not are named among the deaths. */
  async finishClients(withinMs: number): Promise<void> {
    this.#isFinishing = true;
    const clients = this.running("client");
    for (const { child } of clients) child.send("finish", () => {});
    const until = performance.now() + withinMs;
    while (clients.some(isAlive) && performance.now() < until) await sleep(20);
    for (const member of clients.filter(isAlive)) {
      this.deaths.push(`${member.name} did not come to an end.`);
      this.kill(member);
    }
  }

  /** Ends whoever is left and waits until nobody is. */
  async end(): Promise<void> {
    const left = this.members.filter(isAlive);
    for (const member of left) this.kill(member);
    while (left.some(({ child }) => child.exitCode === null && child.signalCode === null)) await sleep(10);
  }

  /** What everybody of a role wrote down. */
  histories(role: Role): History[] {
    return this.members
      .filter((member) => member.role === role)
      .map(({ name, isKilled }) => parseHistory(name, readIfThere(join(this.#folder, name)), isKilled));
  }
}

function isAlive({ child, isKilled }: Member): boolean {
  return !isKilled && child.exitCode === null && child.signalCode === null;
}

/** A process may be killed before it has written anything. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
