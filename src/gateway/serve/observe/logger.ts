import type { Writable } from "node:stream";
import type picocolors from "picocolors";
import { isCallError } from "../../../core/errors/errors.ts";
import { setOwn } from "../../../core/json/json-value.ts";
import type { SecretMask } from "../../../core/secrets/secret-mask.ts";
import { cleanText } from "../../../core/text/clean-text.ts";
import { shortText } from "../../../core/text/truncate-text.ts";
import type { LogConfig } from "../../config/gateway-config.ts";

/** How much a line of the log matters, least first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** A level of the log. */
export type GatewayLogLevel = (typeof LOG_LEVELS)[number];

/** What may stand beside the message of a line. */
export type LogFields = Readonly<Record<string, unknown>>;

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

/** Bytes that wait for the reader of the log; a line that comes then is dropped. */
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
  return new GatewayLogger(dropping(write, isFull), options.secrets, config.level);
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
  /** Whether the end of a turn is waited for: after one with lines, that of the next one is too. */
  #isWaiting = false;

  constructor(stream: Pick<Writable, "write">) {
    this.#stream = stream;
  }

  get length(): number {
    return this.#lines.length;
  }

  add(line: string, mayWait: boolean): void {
    this.#lines += line;
    if (!mayWait || this.#lines.length > BATCH_CHARACTERS) this.#write();
    else if (!this.#isWaiting) {
      this.#isWaiting = true;
      setImmediate(this.#endTurn);
      // A process that ends in this turn has written all it had to say.
      process.on("exit", this.#write);
    }
  }

  readonly #endTurn = (): void => {
    if (this.#lines === "") {
      this.#isWaiting = false;
      process.off("exit", this.#write);
    } else {
      setImmediate(this.#endTurn);
      this.#write();
    }
  };

  readonly #write = (): void => {
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

/** Writes to the log; secrets are masked, and nothing that a terminal acts on gets through. */
export class GatewayLogger {
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

  /** Takes another level from now on; another format needs another logger. */
  readonly setLevel = (level: LogConfig["level"] = "info"): void => {
    this.#least = level === "silent" ? LOG_LEVELS.length : LOG_LEVELS.indexOf(level);
  };

  /** Masks these secrets too from now on. */
  readonly addSecrets = (secrets: Pick<SecretMask, "mask">): void => {
    this.#masks = [secrets, ...this.#masks.filter((mask) => mask !== secrets)].slice(0, MOST_MASKS);
  };

  /** Takes out what must not be shown, as every line does. */
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
  let writtenAt = 0;
  let time = "";
  return (level, message, fields) => {
    const now = Date.now();
    // Many lines are of the same millisecond, and writing it costs as much as several fields.
    if (now !== writtenAt) time = new Date(now).toISOString();
    writtenAt = now;
    const line = { level, time, ...fields, msg: message };
    write(`${JSON.stringify(line)}\n`, isOften(fields));
  };
}

/** Bounds of one line of the log; what is beyond is left out. */
export const LOG_LIMITS = {
  /** Characters of one text. */
  characters: 8_192,
  /** Members of one object or list. */
  members: 100,
  /** Objects within objects. */
  depth: 6,
  /** Values in one line. */
  values: 1_000,
} as const;

/** Names that a line has for itself. */
const TAKEN = new Set(["level", "time", "__proto__"]);

/** A copy of fields that is fit to be written: no secret, nothing a terminal acts on, nothing without end. */
function toLogFields(fields: LogFields, mask: (text: string) => string): LogFields {
  return copyMembers(fields, 0, { mask, values: LOG_LIMITS.values });
}

/** A line that is copied. */
interface Copying {
  readonly mask: (text: string) => string;
  /** How many values it may still have. */
  values: number;
}

function copyValue(value: unknown, depth: number, copying: Copying): unknown {
  copying.values -= 1;
  if (copying.values < 0) return "…";
  switch (typeof value) {
    case "string":
      return toLogText(value, copying.mask);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "undefined":
      return undefined;
    case "bigint":
      return String(value);
    case "symbol":
    case "function":
      return `[${typeof value}]`;
    case "object":
      return value === null ? null : copyObject(value, depth + 1, copying);
  }
}

function copyObject(value: object, depth: number, copying: Copying): unknown {
  if (depth > LOG_LIMITS.depth) return "…";
  try {
    if (value instanceof Error) return copyMembers(errorFields(value), depth, copying);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "no date" : value.toISOString();
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (!Array.isArray(value)) return copyMembers(value as LogFields, depth, copying);
    return value.slice(0, LOG_LIMITS.members).map((item) => copyValue(item, depth, copying));
  } catch {
    return "[unreadable]";
  }
}

function copyMembers(fields: LogFields, depth: number, copying: Copying): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  let members = 0;
  for (const name of Object.keys(fields)) {
    if (members++ === LOG_LIMITS.members) break;
    const shown = toLogText(name, copying.mask);
    const value = copyValue(fields[name], depth, copying);
    setOwn(copy, depth === 0 && TAKEN.has(shown) ? `${shown}_` : shown, value);
  }
  return copy;
}

/** Text that is shown as it is, which nearly all is: finding out costs a tenth of cleaning it. */
const PRINTABLE = /^[\x20-\x7e]*$/;

/** A text that is fit to be written; cut after masking, so that no part of a secret is left at the end. */
function toLogText(text: string, mask: (text: string) => string): string {
  if (text.length <= LOG_LIMITS.characters && PRINTABLE.test(text)) return mask(text);
  const masked = mask(text.slice(0, 8 * LOG_LIMITS.characters));
  // A secret may have been spelt with characters that nobody sees.
  const clean = mask(cleanText(masked).text);
  return shortText(clean, LOG_LIMITS.characters);
}

function errorFields(error: Error): LogFields {
  const { name, message, cause } = error;
  const code: unknown = isCallError(error) ? error.code : (error as { readonly code?: unknown }).code;
  return {
    name,
    message,
    ...(code !== undefined && { code }),
    ...(cause instanceof Error && { cause }),
  };
}

type Colours = ReturnType<typeof picocolors.createColors>;

/** One line of the log for people. */
export interface TextLine {
  readonly level: GatewayLogLevel;
  readonly message: string;
  readonly fields: LogFields;
  readonly colours: Colours;
  readonly now: Date;
}

const PLAIN = /^[\w.:/@+-]{1,200}$/;

/** Writes a line for people: time, level, message, and the fields as `name=value`. */
function writeTextLine({ level, message, fields, colours, now }: TextLine): string {
  const paint = { debug: colours.dim, info: colours.green, warn: colours.yellow, error: colours.red }[level];
  const parts = [
    colours.dim(now.toISOString().slice(11, 23)),
    paint(level.toUpperCase().padEnd(5)),
    onOneLine(message),
    ...Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [`${colours.dim(`${onOneLine(name)}=`)}${writeValue(value)}`],
    ),
  ];
  return `${parts.join(" ")}\n`;
}

function writeValue(value: unknown): string {
  if (typeof value === "string") return PLAIN.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? String(value);
}

function onOneLine(text: string): string {
  return text.replace(/\s*[\r\n\t\u2028\u2029]\s*/g, " ");
}

/** Says whether a stream gets colours: a terminal does, unless `NO_COLOR` or `TERM=dumb`; `FORCE_COLOR` decides otherwise. */
export function wantsColours(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env;
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== "") return !["0", "false"].includes(FORCE_COLOR);
  return isTerminal && TERM !== "dumb";
}
