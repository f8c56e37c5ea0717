// @ts-check
// nginx in the place of the balancer, with the config of the example.
import { spawn } from "node:child_process";
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Debian puts servers where only the path of an administrator looks. */
const FOLDERS = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin"];
const CONFIG = new URL("../../examples/fleet/nginx.conf", import.meta.url);
/** Where the config of the example listens; the gateways follow. */
const FIRST_PORT = 4100;

/** Where a program is, if it is anywhere. @param {string} name @returns {string | undefined} */
export function findProgram(name) {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Where nginx is, if it is anywhere. */
export function findNginx() {
  return findProgram("nginx");
}

/** Starts nginx as the example has it, on other ports. @param {string} folder @param {number} port @param {readonly number[]} gateways */
export function startNginx(folder, port, gateways) {
  const path = join(folder, "nginx.conf");
  const ports = [port, ...gateways];
  const text = readFileSync(CONFIG, "utf8").replaceAll(/127\.0\.0\.1:(41\d\d)/g, (_, found) => {
    return `127.0.0.1:${ports[Number(found) - FIRST_PORT]}`;
  });
  writeFileSync(path, text);
  const args = ["-e", "stderr", "-p", folder, "-c", path, "-g", "daemon off; master_process off;"];
  return spawn(findNginx() ?? "nginx", args, { stdio: ["ignore", "ignore", "pipe"] });
}
