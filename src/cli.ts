#!/usr/bin/env node
import { PACKAGE_VERSION } from "./core/package-version.ts";

const args = process.argv.slice(2);
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${PACKAGE_VERSION}\n`);
} else {
  const { runInProcess } = await import("./cli/run-waybill.ts");
  await runInProcess(args);
}
