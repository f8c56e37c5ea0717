// @ts-check
import { spawn } from "node:child_process";
import { once } from "node:events";

const TELL_CPU = new URL("./tell-cpu.js", import.meta.url).href;

/**
 * Starts a program of ours or of a peer whose processor time can be asked for; it ends with this process at the latest.
 * @param {string | URL} file @param {readonly string[]} args
 * @param {{ stdio?: import("node:child_process").StdioOptions, cwd?: string }} [settings]
 */
export function startMeasured(file, args, settings = {}) {
  const path = file instanceof URL ? file.pathname : file;
  const child = spawn(process.execPath, ["--import", TELL_CPU, path, ...args], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    ...settings,
  });
  const kill = () => child.kill();
  process.once("exit", kill);
  return {
    child,
    /** Processor time used so far, in nanoseconds. @returns {Promise<number>} */
    cpu: async () => {
      child.send("cpu");
      const [{ cpu }] = await once(child, "message");
      return cpu;
    },
    close: async () => {
      process.off("exit", kill);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Starts a program that sends its port once it listens. @param {string | URL} file @param {readonly string[]} [args] */
export async function startServer(file, args = []) {
  const started = startMeasured(file, args);
  const [{ port }] = await once(started.child, "message");
  return { ...started, port: /** @type {number} */ (port) };
}
