import { defineConfig } from "vitest/config";

/** The unit tests of core alone: what a mutation run repeats for every mutant. */
export default defineConfig({
  test: {
    include: ["src/core/**/*.test.ts"],
  },
});
