import type { Reporter, TestModule } from "vitest/node";

/** Names the tests that only passed when they were tried once more, so that nobody takes them for sound. */
export const nameRetried: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    for (const module of modules) {
      for (const test of module.children.allTests("passed")) {
        if ((test.diagnostic()?.retryCount ?? 0) > 0) {
          console.log(`Passed at the second try: ${module.relativeModuleId} > ${test.fullName}`);
        }
      }
    }
  },
};
