import { spawn } from "node:child_process";

/** What opens an address, without a shell. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens an address in the browser; resolves with why that failed, or with nothing. */
export function openBrowser(
  url: string,
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Promise<string | undefined> {
  const [command = "", ...args] = OPENERS[platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { env, stdio: "ignore", detached: true });
    child.once("error", (error: NodeJS.ErrnoException) => {
      resolve(`${command} cannot be started (${error.code ?? "unknown"})`);
    });
    child.once("exit", (code) => resolve(code === 0 ? undefined : `${command} failed`));
    child.unref();
  });
}
