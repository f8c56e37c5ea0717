/** What of this process's environment a child is given without being asked for: where programs, files and words are found. */
const SAFE_NAMES = ["PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"] as const;

const SAFE_WINDOWS_NAMES = [
  "PATH",
  "PATHEXT",
  "APPDATA",
  "LOCALAPPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
] as const;

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of `childEnv`. */
export interface ChildEnvOptions {
  /** Given to the child as it is; wins over what is inherited. @default nothing */
  readonly env?: Environment | undefined;
  /** Names that are inherited beside the safe ones, or all of them. @default none */
  readonly inheritEnv?: readonly string[] | "all" | undefined;
  /** @default process.env */
  readonly parent?: Environment | undefined;
  /** @default process.platform */
  readonly platform?: NodeJS.Platform | undefined;
}

/** Makes the environment of a child: a short safe list of this process's variables, what is asked for, and what is given. */
export function childEnv(options: ChildEnvOptions = {}): Record<string, string> {
  const { env = {}, inheritEnv = [], parent = process.env, platform = process.platform } = options;
  // Windows knows no case in names, and would take the first of two spellings.
  const keyOf = (name: string): string => (platform === "win32" ? name.toUpperCase() : name);
  const safe: readonly string[] = platform === "win32" ? SAFE_WINDOWS_NAMES : SAFE_NAMES;
  const wanted = inheritEnv === "all" ? undefined : new Set([...safe, ...inheritEnv].map(keyOf));
  const found = new Map<string, readonly [name: string, value: string]>();
  for (const [name, value] of Object.entries(parent)) {
    // A value like that is a function some shells would run.
    if (value === undefined || value.startsWith("()")) continue;
    if (!wanted || wanted.has(keyOf(name)) || name.startsWith("LC_")) found.set(keyOf(name), [name, value]);
  }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined) found.set(keyOf(name), [name, value]);
  }
  return Object.fromEntries(found.values());
}
