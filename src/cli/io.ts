/** What a command reads, writes and knows of its surroundings. */
export interface Io {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The script of the process, by which the command is spelled where it must be pasted. @default none: it is called `waybill` */
  readonly script?: string | undefined;
  /** Aborted at the first Ctrl-C. @default never */
  readonly signal?: AbortSignal | undefined;
  /** Nothing on stderr but what went wrong. @default false */
  readonly quiet?: boolean | undefined;
  /** Tells more on stderr, in a pipe too. @default false */
  readonly verbose?: boolean | undefined;
}

/** How a command ends. */
export const EXIT = {
  ok: 0,
  /** The operation answered with an error of its own; for `check` and `doctor`: something is wrong with what was looked at. */
  toolError: 1,
  /** A wrong flag, bad JSON, a missing file, a mistake in the config. */
  usage: 2,
  /** The call never ran or broke; a server that cannot be reached. */
  callError: 3,
  /** A mistake of ours. */
  fault: 70,
  interrupted: 130,
} as const;

/** A command that ends with one message for people, on stderr, and an exit code. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.usage, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
