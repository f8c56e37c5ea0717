import { defineConfig } from "vitest/config";

/** The tests that read and write formats: what a mutation run of the decoders repeats for every mutant. */
export default defineConfig({
  test: {
    env: { WAYBILL_LAW_RUNS: "10" },
    include: [
      "src/formats/*.test.ts",
      "src/formats/{plain,response-envelope,status-envelope,tiered-envelope,tool-envelope}/*.test.ts",
      "test/{format-laws,vectors}.test.ts",
    ],
  },
});
