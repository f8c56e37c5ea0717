import type { Io } from "../io.ts";
import { paintJson, toSafeJson } from "../terminal/json-output.ts";
import { createStyle } from "../terminal/style.ts";

/** Writes JSON to stdout: on a terminal with line breaks and colours, in a pipe one line. */
export function writeJson(io: Io, value: unknown): void {
  const isTerminal = io.stdout.isTTY === true;
  const json = toSafeJson(value, isTerminal ? 2 : 0);
  io.stdout.write(`${isTerminal ? paintJson(json, createStyle(io.stdout, io.env)) : json}\n`);
}
