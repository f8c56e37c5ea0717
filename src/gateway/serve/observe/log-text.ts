import type picocolors from "picocolors";
import type { GatewayLogLevel, LogFields } from "./logger.ts";

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
export function writeTextLine({ level, message, fields, colours, now }: TextLine): string {
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
