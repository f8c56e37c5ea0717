import { expect, it } from "vitest";
import { spawnChild, whenSpawned } from "./spawn-child.ts";

it("Mcp: says on Windows why a command of npm cannot be started, and what to write instead", async () => {
  const options = { command: "no-such-command-here", platform: "win32" } as const;
  const started = whenSpawned(spawnChild(options), options);
  await expect(started).rejects.toThrow(/npx is a \.cmd file.*use "cmd" with the arguments "\/c", "npx"/);
});
