import { defineConfig } from "vitest/config";

/** The tests of one area, which `scripts/mutation.js` names: what a mutation run repeats for every mutant. */
export default defineConfig({
  test: {
    include: (process.env["WAYBILL_MUTATION_TESTS"] ?? "src/core/**/*.test.ts").split(" "),
    exclude: ["**/*.{process,terminal,broker,browser,faults}.test.ts"],
    env: { WAYBILL_RUNS: "0.02" },
    setupFiles: ["test/setup/properties.ts", "test/setup/patience.ts"],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
