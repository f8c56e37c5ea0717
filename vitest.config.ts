import { defineConfig } from "vitest/config";
import { HARDENED_FLAGS } from "./test/run-node.ts";

/** Processes that are killed under load. */
const FAULTS = "test/call-faults.test.ts";

/** The package as users have it: packed, and installed into an empty folder. */
const INSTALLED = "test/installed/**/*.test.ts";

/** Of these, what runs the most of our code: the rest is about texts and terminals, which the flags do not change. */
const INSTALLED_HARDENED = [
  "test/installed/{commands,config-files,embedded,gateway-peers,gateway-policies,package}.test.ts",
];

/** `--mode hardened` runs the same tests in a Node that forbids code generation and `__proto__`. */
export default defineConfig(({ mode }) => {
  const hardened = mode === "hardened";
  const shared = { mode, pool: "forks", execArgv: hardened ? [...HARDENED_FLAGS] : [] } as const;
  return {
    test: {
      projects: [
        {
          test: {
            ...shared,
            name: "core",
            include: ["src/{core,formats,call}/**/*.test.ts"],
            typecheck: { enabled: !hardened, include: ["src/{core,formats,call}/**/*.test-d.ts"] },
          },
        },
        {
          test: {
            ...shared,
            name: "mcp",
            include: ["src/{http,mcp}/**/*.test.ts"],
            // Many of these start a process and wait for it to end.
            testTimeout: 30_000,
          },
        },
        {
          test: {
            ...shared,
            name: "openapi",
            include: ["src/openapi/**/*.test.ts"],
            // Many of these talk to servers, some of which are slow on purpose.
            testTimeout: 30_000,
          },
        },
        {
          test: {
            ...shared,
            name: "command",
            include: ["src/{gateway,cli,inspector}/**/*.test.ts"],
            // Many of these start a process, some a broker.
            testTimeout: 60_000,
          },
        },
        {
          test: {
            ...shared,
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
            ...shared,
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
            name: "faults",
            include: [FAULTS],
            testTimeout: 1_200_000,
            // Alone, after everything else: it keeps all cores busy, and others measure time.
            sequence: { groupOrder: 1 },
          },
        },
      ],
    },
  };
});
