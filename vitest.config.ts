import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { HARDENED_FLAGS } from "./test/run-node.ts";
import { WhatToDoReporter } from "./test/setup/reporter.ts";

/** What a test needs beyond this process is the last part of its file's name: `x.broker.test.ts` needs a broker. */
const named = (need: string): string => `{src,test}/**/*.${need}.test.ts`;

const PROCESSES = named("process");
const TERMINALS = named("terminal");
const BROKERS = named("broker");
const BROWSERS = named("browser");

/** Processes that are killed under load, alone and last: they keep every core busy for a while. */
const FAULTS = named("faults");

/** Counts the timers that are left, in a process of its own: what other files have left behind would count too. */
const ALONE = "test/call-model.test.ts";

/** The package as users have it: packed, and installed into an empty folder. */
const INSTALLED = "test/installed/**/*.test.ts";

/** The example that is served without a config imports the package by its name, and is tested with the sources. */
const SOURCES = {
  alias: [
    { find: /^waybill$/, replacement: fileURLToPath(new URL("src/index.ts", import.meta.url)) },
    { find: /^waybill\/mcp$/, replacement: fileURLToPath(new URL("src/mcp/index.ts", import.meta.url)) },
  ],
};

/** `--mode hardened` runs the tests in a Node that forbids code generation and `__proto__`; Playwright and terminals need neither. */
export default defineConfig(({ mode }) => {
  const hardened = mode === "hardened";
  const shared = {
    mode,
    pool: "forks" as const,
    // Files share a process and its modules: starting both anew for each of them takes longer than the tests.
    isolate: false,
    execArgv: hardened ? [...HARDENED_FLAGS] : [],
    setupFiles: ["test/setup/properties.ts", "test/setup/patience.ts", "test/setup/leave-no-trace.ts"],
    maxWorkers: Number(process.env["WAYBILL_TEST_WORKERS"] ?? 2),
    // Nothing is judged by the clock; this ends what hangs, on a busy machine too.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000 } },
  };
  const pages = hardened ? [BROWSERS, TERMINALS] : [];
  return {
    test: {
      reporters: ["default", new WhatToDoReporter()],
      silent: "passed-only",
      projects: [
        {
          test: {
            ...shared,
            name: "unit",
            include: ["{src,test}/**/*.test.ts"],
            exclude: [PROCESSES, TERMINALS, BROKERS, BROWSERS, FAULTS, INSTALLED, ALONE],
            setupFiles: [...shared.setupFiles, "test/setup/no-processes.ts"],
          },
        },
        {
          test: {
            ...shared,
            name: "unit-alone",
            include: [ALONE],
            isolate: true,
            setupFiles: [...shared.setupFiles, "test/setup/no-processes.ts"],
          },
        },
        {
          test: {
            ...shared,
            name: "processes",
            include: [PROCESSES, ...(hardened ? [] : [TERMINALS])],
            exclude: [INSTALLED],
            globalSetup: ["test/setup/build-once.ts"],
          },
        },
        { test: { ...shared, name: "brokers", include: [BROKERS] } },
        {
          test: {
            ...shared,
            name: "browsers",
            include: hardened ? [] : [BROWSERS],
            exclude: [INSTALLED],
            globalSetup: ["test/setup/build-once.ts"],
          },
        },
        {
          test: {
            ...shared,
            name: "installed",
            include: [INSTALLED],
            exclude: pages,
            globalSetup: ["test/setup/install-once.ts"],
          },
        },
        {
          test: {
            ...shared,
            name: "faults",
            include: [FAULTS],
            globalSetup: ["test/setup/build-once.ts"],
            testTimeout: 1_200_000,
            sequence: { groupOrder: 1 },
          },
        },
      ].map((project) => ({ resolve: SOURCES, ...project })),
    },
  };
});
