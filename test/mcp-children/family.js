// Starts a child that says when it is ready. "crash": ends at the first line it reads; "leave": ends with its input; "stay": never.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const [mode, ...child] = process.argv.slice(2);
// Before the child that says when all are ready.
if (mode === "stay") process.on("SIGTERM", () => {});
spawn(process.execPath, [fileURLToPath(new URL("stubborn.js", import.meta.url)), ...child], {
  stdio: ["ignore", "inherit", "inherit"],
  detached: child.includes("outside"),
});
if (mode === "stay") setInterval(() => {}, 1_000);
process.stdin.on("data", () => mode === "crash" && process.exit(3));
process.stdin.on("end", () => mode === "leave" && process.exit(0));
