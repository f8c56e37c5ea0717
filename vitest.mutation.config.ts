import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The tests beside a file come before those that cross folders, which take longer: a run ends with the first test that fails. */
class NearestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isFar = ({ moduleId }: TestSpecification) => Number(moduleId.includes("/test/"));
    return files.sort((a, b) => isFar(a) - isFar(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

/** The tests of one area, which `scripts/mutation.js` names: what a mutation run repeats for every mutant. */
export default defineConfig({
  test: {
    isolate: false,
    sequence: { sequencer: NearestFirst },
    include: (process.env["WAYBILL_MUTATION_TESTS"] ?? "src/core/**/*.test.ts").split(" "),
    exclude: ["**/*.{process,terminal,broker,browser,faults}.test.ts"],
    env: { WAYBILL_RUNS: "0.02" },
    setupFiles: ["test/setup/properties.ts", "test/setup/patience.ts"],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
