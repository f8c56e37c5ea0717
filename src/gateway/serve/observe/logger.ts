import type { Writable } from "node:stream";
import type { SecretMask } from "../../../core/secrets/secret-mask.ts";
import type { LogConfig } from "../../config/gateway-config.ts";
import { toLogFields, toLogText } from "./log-fields.ts";
import { writeTextLine } from "./log-text.ts";
import { wantsColours } from "./wants-colours.ts";

/** How much a line of the log matters, least first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** A level of the log. */
export type GatewayLogLevel = (typeof LOG_LEVELS)[number];

/** What may stand beside the message of a line. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes to the log; secrets are masked, and nothing that a terminal acts on gets through. */
export interface GatewayLogger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Takes another level from now on; another format needs another logger. */
  setLevel(level: LogConfig["level"]): void;
  /** Takes out what must not be shown, as every line does. */
  mask(text: string): string;
  /** Masks these secrets too from now on. */
  addSecrets(secrets: Pick<SecretMask, "mask">): void;
}

/** What a logger is made from. */
export interface LoggerOptions {
  readonly config?: LogConfig | undefined;
  readonly secrets: Pick<SecretMask, "mask">;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Whether people read along. @default whether stderr is a terminal */
  readonly isTerminal?: boolean | undefined;
  /** Gets whole lines. @default they go to `stream` */
  readonly write?: ((line: string) => void) | undefined;
  /** Where lines go. One that nobody reads keeps a mebibyte of them; more are dropped, and counted once it is read again. @default stderr */
  readonly stream?: Pick<Writable, "write" | "writableLength" | "on" | "listeners"> | undefined;
}

/** Bytes that wait for whoever reads the log; a line that comes then is dropped. */
const MOST_WAITING = 1_048_576;

/** Masks of earlier configs that still count. */
const MOST_MASKS = 16;

type Write = (level: GatewayLogLevel, message: string, fields: LogFields) => void;

/** Creates the log of a gateway: lines for people, or JSON. */
export async function createLogger(options: LoggerOptions): Promise<GatewayLogger> {
  const { config = {}, env = process.env, isTerminal = process.stderr.isTTY === true } = options;
  const isText = (config.format ?? (isTerminal ? "text" : "json")) === "text";
  const { stream = process.stderr } = options;
  // A reader that has left is no reason to end.
  if (options.write === undefined && !stream.listeners("error").includes(ignore)) stream.on("error", ignore);
  const batch = new LineBatch(stream);
  const writeLine: WriteLine = options.write ?? ((line, mayWait) => batch.add(line, mayWait));
  const write = isText
    ? await createTextWrite(writeLine, wantsColours(env, isTerminal))
    : toJsonWrite(writeLine);
  const isFull = (): boolean =>
    options.write === undefined && stream.writableLength + batch.length > MOST_WAITING;
  return new MaskingLogger(dropping(write, isFull), options.secrets, config.level);
}

function ignore(): void {}

/** Writes one line; one that may wait is written with others, at the end of this turn. */
type WriteLine = (line: string, mayWait: boolean) => void;

/** Characters from which on lines do not wait for the end of the turn. */
const BATCH_CHARACTERS = 65_536;

/** Lines that are written in one piece: a write to a file or a pipe costs as much as making several of them. */
class LineBatch {
  readonly #stream: Pick<Writable, "write">;
  #lines = "";

  constructor(stream: Pick<Writable, "write">) {
    this.#stream = stream;
  }

  get length(): number {
    return this.#lines.length;
  }

  add(line: string, mayWait: boolean): void {
    const isFirst = this.#lines === "";
    this.#lines += line;
    if (!mayWait || this.#lines.length > BATCH_CHARACTERS) this.#flush();
    else if (isFirst) {
      setImmediate(this.#flush);
      // A process that ends in this turn has written all it had to say.
      process.once("exit", this.#flush);
    }
  }

  readonly #flush = (): void => {
    process.off("exit", this.#flush);
    const lines = this.#lines;
    this.#lines = "";
    if (lines !== "") this.#stream.write(lines);
  };
}

/** Calls are told of often, and nobody reads along word by word; all else is written at once, after them. */
function isOften({ event }: LogFields): boolean {
  return event === "call";
}

/** Drops lines while nobody reads those before them: a log must not hold up what it tells of. How many were is told when there is room again. */
function dropping(write: Write, isFull: () => boolean): Write {
  let dropped = 0;
  return (level, message, fields) => {
    if (isFull()) {
      dropped += 1;
      return;
    }
    if (dropped > 0) write("warn", "lines of the log were dropped: nobody read them", { dropped });
    dropped = 0;
    write(level, message, fields);
  };
}

class MaskingLogger implements GatewayLogger {
  readonly #write: Write;
  #masks: readonly Pick<SecretMask, "mask">[];
  #least = 0;

  constructor(write: Write, secrets: Pick<SecretMask, "mask">, level: LogConfig["level"]) {
    this.#write = write;
    this.#masks = [secrets];
    this.setLevel(level);
  }

  readonly debug = (message: string, fields?: LogFields): void => this.#log("debug", message, fields);
  readonly info = (message: string, fields?: LogFields): void => this.#log("info", message, fields);
  readonly warn = (message: string, fields?: LogFields): void => this.#log("warn", message, fields);
  readonly error = (message: string, fields?: LogFields): void => this.#log("error", message, fields);

  readonly setLevel = (level: LogConfig["level"] = "info"): void => {
    this.#least = level === "silent" ? LOG_LEVELS.length : LOG_LEVELS.indexOf(level);
  };

  readonly addSecrets = (secrets: Pick<SecretMask, "mask">): void => {
    this.#masks = [secrets, ...this.#masks.filter((mask) => mask !== secrets)].slice(0, MOST_MASKS);
  };

  readonly mask = (text: string): string => {
    let masked = text;
    for (const each of this.#masks) masked = each.mask(masked);
    return masked;
  };

  #log(level: GatewayLogLevel, message: string, fields: LogFields = {}): void {
    if (LOG_LEVELS.indexOf(level) < this.#least) return;
    const shown = toLogFields(fields, this.mask);
    try {
      this.#write(level, toLogText(message, this.mask), shown);
    } catch {
      // Nobody reads the log any more; that ends no call.
    }
  }
}

async function createTextWrite(write: WriteLine, isColoured: boolean): Promise<Write> {
  const { default: picocolors } = await import("picocolors");
  const colours = picocolors.createColors(isColoured);
  return (level, message, fields) =>
    write(writeTextLine({ level, message, fields, colours, now: new Date() }), isOften(fields));
}

/** One object a line, as the fields were copied: level and time first, the message last. */
function toJsonWrite(write: WriteLine): Write {
  return (level, message, fields) => {
    const line = { level, time: new Date().toISOString(), ...fields, msg: message };
    write(`${JSON.stringify(line)}\n`, isOften(fields));
  };
}
