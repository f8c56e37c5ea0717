import { safeLine } from "../../core/text/clean-text.ts";
import type { Io } from "../io.ts";
import { createStyle } from "./style.ts";
import { cutToWidth } from "./table.ts";

/** Work that ends sooner shows nothing. */
const SHOWN_AFTER_MS = 500;
const FRAME_MS = 80;
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ERASE = "\r\u001b[2K";
const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";

/**
 * Does work that may take a while. After half a second a terminal is shown what goes on, on stderr; in a pipe one line says so
 * with `--verbose`, otherwise nothing does. `update` changes the text.
 */
export async function withProgress<T>(
  io: Io,
  text: string,
  work: (update: (text: string) => void) => Promise<T>,
): Promise<T> {
  const spinner = createSpinner(io, text);
  try {
    return await work(spinner.update);
  } finally {
    spinner.stop();
  }
}

/** Takes away what moves on the screen; it comes back with its next frame. */
let erase = (): void => {};
let isHeld = false;

/** Keeps the screen still meanwhile: a question to the person and what moves do not go together. */
export async function withoutProgress<T>(ask: () => Promise<T>): Promise<T> {
  isHeld = true;
  erase();
  try {
    return await ask();
  } finally {
    isHeld = false;
  }
}

interface Spinner {
  readonly update: (text: string) => void;
  readonly stop: () => void;
}

function createSpinner(io: Io, first: string): Spinner {
  const { stderr } = io;
  if (io.quiet || (stderr.isTTY !== true && !io.verbose)) return { update: () => {}, stop: () => {} };
  let text = first;
  const isAnimated = stderr.isTTY === true && io.env["TERM"] !== "dumb";
  if (!isAnimated)
    return createLines(
      io,
      () => text,
      (next) => (text = next),
    );
  const style = createStyle(stderr, io.env);
  let frame = 0;
  let isShown = false;
  const draw = (): void => {
    if (isHeld) return;
    const line = cutToWidth(safeLine(text), (stderr.columns || 80) - 3);
    stderr.write(
      `${isShown ? "" : HIDE_CURSOR}${ERASE}${style.cyan(FRAMES[frame++ % FRAMES.length] as string)} ${line}`,
    );
    isShown = true;
  };
  let timer = setTimeout(() => {
    draw();
    timer = setInterval(draw, FRAME_MS);
  }, SHOWN_AFTER_MS);
  const hide = (): void => {
    if (isShown) stderr.write(`${ERASE}${SHOW_CURSOR}`);
    isShown = false;
  };
  erase = hide;
  const stop = (): void => {
    clearTimeout(timer);
    process.off("exit", stop);
    hide();
  };
  // Whichever way the process ends, the cursor comes back.
  process.on("exit", stop);
  return { update: (next) => (text = next), stop };
}

/** One line for each text, for those who cannot be shown a moving one. */
function createLines(io: Io, current: () => string, change: (text: string) => void): Spinner {
  let isShown = false;
  const say = (): void => {
    isShown = true;
    io.stderr.write(`${safeLine(current())}\n`);
  };
  const timer = setTimeout(say, SHOWN_AFTER_MS);
  const update = (text: string): void => {
    const isNew = text !== current();
    change(text);
    if (isShown && isNew) say();
  };
  return { update, stop: () => clearTimeout(timer) };
}
