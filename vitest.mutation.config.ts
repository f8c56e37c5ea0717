import { defineConfig } from "vitest/config";

/** The tests of core alone: what a mutation run repeats for every mutant. */
export default defineConfig({
  test: {
    include: ["src/core/**/*.test.ts", "test/{access-matrix,normalization-laws,schema-differential}.test.ts"],
  },
});
