import { defineConfig } from "vitest/config";
import { HARDENED_FLAGS } from "./test/run-node.ts";

/** The whole suite a second time, in a Node that forbids code generation and `__proto__`. */
export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    globalSetup: ["test/build-once.ts"],
    pool: "forks",
    execArgv: [...HARDENED_FLAGS],
  },
});
