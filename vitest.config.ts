import { defineConfig } from "vitest/config";
import { nameRetried } from "./test/name-retried.ts";
import { HARDENED_FLAGS } from "./test/run-node.ts";

/** Processes that are killed under load. */
const FAULTS = "test/call-faults.test.ts";

/** A broker of their own, which some of them stop and start again. */
const BROKERS = ["src/call/nats/**/*.test.ts", "src/gateway/{serve/serve-bus,sources/bus-source}.test.ts"];

/** The package as users have it: packed, and installed into an empty folder. */
const INSTALLED = "test/installed/**/*.test.ts";

/** Of these, what runs the most of our code: the rest is about texts and terminals, which the flags do not change. */
const INSTALLED_HARDENED = ["test/installed/{commands,embedded,gateway-peers,package}.test.ts"];

/** `--mode hardened` runs the same tests in a Node that forbids code generation and `__proto__`. */
export default defineConfig(({ mode }) => {
  const hardened = mode === "hardened";
  const shared = { mode, pool: "forks", execArgv: hardened ? [...HARDENED_FLAGS] : [] } as const;
  // Real processes, browsers and brokers on a machine shared with others: in CI a test of those that fails is tried once more, and named at the end.
  const processes = { retry: process.env["CI"] === "true" ? 1 : 0 } as const;
  // Files side by side where they bring all they need; those that restart a broker at its port, or start many processes, come after, one by one.
  const quick = { ...shared, maxWorkers: 2, sequence: { groupOrder: 0 } } as const;
  const slow = { ...shared, maxWorkers: 1, sequence: { groupOrder: 1 } } as const;
  return {
    test: {
      reporters: ["default", nameRetried],
      projects: [
        {
          test: {
            ...quick,
            name: "core",
            include: ["src/{core,formats,call}/**/*.test.ts"],
            exclude: BROKERS,
            // Many of these try thousands of values.
            testTimeout: 30_000,
            typecheck: { enabled: !hardened, include: ["src/{core,formats,call}/**/*.test-d.ts"] },
          },
        },
        {
          test: {
            ...quick,
            ...processes,
            name: "mcp",
            include: ["src/{http,mcp}/**/*.test.ts"],
            // Many of these start a process and wait for it to end.
            testTimeout: 30_000,
          },
        },
        {
          test: {
            ...quick,
            name: "openapi",
            include: ["src/openapi/**/*.test.ts"],
            // Many of these talk to servers, some of which are slow on purpose.
            testTimeout: 30_000,
          },
        },
        {
          test: {
            ...slow,
            ...processes,
            name: "brokers",
            include: BROKERS,
            testTimeout: 30_000,
          },
        },
        {
          test: {
            ...quick,
            ...processes,
            name: "command",
            include: ["src/{gateway,cli,inspector}/**/*.test.ts"],
            exclude: BROKERS,
            // Many of these start a process.
            testTimeout: 60_000,
          },
        },
        {
          test: {
            ...slow,
            ...processes,
            name: "package",
            include: ["src/*.test.ts", "src/{lint,tour}/**/*.test.ts", "test/**/*.test.ts"],
            exclude: [FAULTS, INSTALLED],
            globalSetup: ["test/build-once.ts"],
            // Most of these start a process, some a compiler.
            testTimeout: 60_000,
            hookTimeout: 120_000,
          },
        },
        {
          test: {
            ...slow,
            ...processes,
            name: "installed",
            include: hardened ? INSTALLED_HARDENED : [INSTALLED],
            globalSetup: ["test/install-once.ts"],
            testTimeout: 120_000,
            hookTimeout: 120_000,
          },
        },
        {
          test: {
            ...shared,
            ...processes,
            name: "faults",
            include: [FAULTS],
            testTimeout: 1_200_000,
            // Alone, after everything else: it keeps all cores busy, and others measure time.
            sequence: { groupOrder: 2 },
          },
        },
      ],
    },
  };
});
