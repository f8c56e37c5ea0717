import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { openFolder } from "./installed-command.ts";
import { type TerminalOptions, type TerminalRun, waybillOnTerminal } from "./run-on-terminal.ts";
import { showScreen } from "./terminal-screen.ts";

/** Operations of a project: one with wide letters, one that goes on until it is let go, one that never ends. */
const MODULE = `
import { existsSync, writeFileSync } from "node:fs";
import { defineOperation, Type } from "waybill";
const common = { namespace: "post", version: "1.0.0", outputSchema: Type.Unknown() };
export const wide = defineOperation({
  ...common, name: "wide", type: "query", inputSchema: Type.Object({}),
  description: "包裹在哪里？包裹在哪里？包裹在哪里？包裹在哪里？ 한국어 설명입니다 한국어 설명입니다 한국어 설명입니다 📦📦📦📦📦 and the end.",
  handler: () => ({ city: "東京", kg: 2.5, fragile: true, note: null }),
});
export const plain = defineOperation({
  ...common, name: "a_rather_long_name_for_an_operation", type: "query", inputSchema: Type.Object({}),
  description: "A description that is longer than any terminal of eighty columns can show beside the rest, by far, the end.",
  handler: () => "text",
});
export const held = defineOperation({
  ...common, name: "held", type: "query", description: "Ends when a file is there.",
  inputSchema: Type.Object({ file: Type.String(), started: Type.Optional(Type.String()) }),
  async handler({ file, started }, { signal }) {
    if (started !== undefined) writeFileSync(started, "");
    while (!existsSync(file) && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10));
    return { held: true };
  },
});
export const lasts = defineOperation({
  ...common, name: "lasts", type: "query", description: "Takes a while.", inputSchema: Type.Object({}),
  async handler() {
    await new Promise((resolve) => setTimeout(resolve, 900));
    return "done";
  },
});
export const ticks = defineOperation({
  ...common, name: "ticks", type: "subscription", description: "Ticks for ever.", inputSchema: Type.Object({}),
  async *handler(_, { signal }) {
    for (let tick = 1; !signal.aborted; tick++) {
      yield { tick };
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
});
`;

/** What Ctrl-C types. */
export const CTRL_C = "\u0003";

/** What moves on the screen. */
export const SPINNER = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/;

/** A folder with a config and operations, in which `waybill` runs on a terminal. */
export interface TerminalProject {
  readonly path: string;
  readonly state: string;
  run(args: readonly string[], options?: Partial<TerminalOptions>): Promise<TerminalRun>;
  /** A name that no file has yet. */
  freshFile(): string;
  remove(): void;
}

/** Makes the folder. */
export function openTerminalProject(): TerminalProject {
  const { path, state, remove } = openFolder();
  writeFileSync(join(path, "post.mjs"), MODULE);
  writeFileSync(join(path, "waybill.config.json"), JSON.stringify({ operations: "post.mjs" }));
  let count = 0;
  return {
    path,
    state,
    remove,
    run: (args, options = {}) => {
      const env = { WAYBILL_STATE_DIR: state, HOME: state, ...options.env };
      return waybillOnTerminal(args, { cwd: path, ...options, env });
    },
    freshFile: () => join(state, `file-${count++}`),
  };
}

/** What is left on the screen, and nothing of it a stack or half a control. */
export function seenOn(screen: string): string {
  const shown = showScreen(screen);
  expect(shown.isCursorShown).toBe(true);
  const text = shown.lines.join("\n");
  expect(text).not.toMatch(/^ {4}at /m);
  expect(text).not.toMatch(SPINNER);
  return text;
}
