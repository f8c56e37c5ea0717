import type { LogConfig } from "../../config/gateway-config.ts";
import type { SecretMask } from "../../config/secret-mask.ts";
import { toLogFields } from "./log-fields.ts";
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
  /** Gets whole lines. @default stderr, at once, so that nothing is lost when the process ends */
  readonly write?: ((line: string) => void) | undefined;
}

/** Masks of earlier configs that still count. */
const MOST_MASKS = 16;

type Write = (level: GatewayLogLevel, message: string, fields: LogFields) => void;

/** Creates the log of a gateway: lines for people, or JSON by pino, which is loaded only then. */
export async function createLogger(options: LoggerOptions): Promise<GatewayLogger> {
  const { config = {}, env = process.env, isTerminal = process.stderr.isTTY === true } = options;
  const isText = (config.format ?? (isTerminal ? "text" : "json")) === "text";
  const write = isText
    ? await createTextWrite(options.write ?? writeStderr, wantsColours(env, isTerminal))
    : await createJsonWrite(options.write);
  return new MaskingLogger(write, options.secrets, config.level);
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

  readonly mask = (text: string): string => this.#masks.reduce((masked, each) => each.mask(masked), text);

  #log(level: GatewayLogLevel, message: string, fields: LogFields = {}): void {
    if (LOG_LEVELS.indexOf(level) < this.#least) return;
    const { msg, ...rest } = toLogFields({ ...fields, msg: message }, this.mask);
    try {
      this.#write(level, String(msg), rest);
    } catch {
      // Nobody reads the log any more; that ends no call.
    }
  }
}

async function createTextWrite(write: (line: string) => void, isColoured: boolean): Promise<Write> {
  const { default: picocolors } = await import("picocolors");
  const colours = picocolors.createColors(isColoured);
  return (level, message, fields) =>
    write(writeTextLine({ level, message, fields, colours, now: new Date() }));
}

async function createJsonWrite(write: ((line: string) => void) | undefined): Promise<Write> {
  const { pino } = await import("pino");
  const destination = write === undefined ? pino.destination({ fd: 2, sync: true }) : { write };
  // A reader that has left is no reason to end.
  if ("on" in destination) destination.on("error", () => {});
  const logger = pino(
    {
      level: "debug",
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: {},
    },
    destination,
  );
  return (level, message, fields) => logger[level](fields, message);
}

function writeStderr(line: string): void {
  process.stderr.write(line);
}
