/** Fields of a config below which every text is kept out of messages. */
const SECRET_FIELDS = new Set([
  "env",
  "headers",
  "bearer",
  "token",
  "tokens",
  "password",
  "auth",
  "oauth",
  "clientSecret",
  "refreshToken",
  "nkey",
  "credentials",
]);

/** Fields whose text is a secret for certain. */
const CERTAIN_FIELDS = new Set<string>([
  ...(["bearer", "token", "password", "secret", "clientSecret", "refreshToken"] as const),
  ...(["nkey", "credentials"] as const),
]);

/** Words of a name that say that the value is a secret. */
const SECRET_WORDS = new Set(
  (
    "token tokens secret secrets password passwords passwd passphrase pass pw pwd key keys apikey auth authorization " +
    "authentication credential credentials creds bearer cookie cookies pat jwt dsn signature session private"
  ).split(" "),
);

/** Last words of a name that say that the value tells where or what a secret is, and is none itself. */
const OPEN_ENDINGS = new Set(
  "path file dir directory folder url uri endpoint host port sock socket type mode method scope scopes id issuer audience".split(
    " ",
  ),
);

/** Words of a name that say that the value is known to everybody. */
const OPEN_WORDS = new Set(
  (
    "home path user username host hostname port region zone env environment dir directory folder root workspace project url uri " +
    "endpoint domain version lang language locale shell term tz timezone level mode stage platform arch model"
  ).split(" "),
);

/** Too common to be told from other text. */
const COMMON = new Set(
  (
    "true false null none undefined test tests testing local localhost 1234 12345 123456 admin root user guest default example " +
    "production development staging debug info warn error http https json text"
  ).split(" "),
);

/** Shorter values would mask what is no secret. */
const LEAST_LENGTH = 4;
/** A value that nothing but its looks speaks against. */
const LEAST_UNNAMED_LENGTH = 8;

/** Tells whether texts at this place of a config may be secrets and are not shown in messages. */
export function isSecretField(path: readonly (string | number)[]): boolean {
  return isSessionKey(path) || path.some((part) => typeof part === "string" && SECRET_FIELDS.has(part));
}

/** Tells whether a text at this place of a config is a secret for certain. */
export function isCertainSecret(path: readonly (string | number)[]): boolean {
  const last = path.at(-1);
  if (isApiCredential(path) || isSessionKey(path)) return true;
  // A variable may be called "token" in any spelling; that is a matter of its name.
  return (
    typeof last === "string" && CERTAIN_FIELDS.has(last) && path.at(-2) !== "env" && path.at(-2) !== "headers"
  );
}

/** Tells whether a credential of an HTTP API stands at this place of a config. */
export function isApiCredential(path: readonly (string | number)[]): boolean {
  return path[0] === "openapi" && path[2] === "auth" && path.length === 4;
}

/** Tells whether a key that gateways share stands at this place of a config, or a list of them. */
function isSessionKey(path: readonly (string | number)[]): boolean {
  return path[0] === "serve" && path[1] === "sessions" && path[2] === "key";
}

/** Tells whether a name such as `GITHUB_TOKEN`, `apiKey` or `X-Api-Key` is that of a secret. */
export function isSecretName(name: string): boolean {
  if (name === "PWD" || name === "OLDPWD") return false;
  const words = wordsOf(name);
  if (OPEN_ENDINGS.has(words.at(-1) ?? "")) return false;
  return words.some((word) => SECRET_WORDS.has(word) || /(?:token|secret|password|apikey)s?$/.test(word));
}

/** Tells whether a text is too short or too common to be taken out of others. */
export function isTooCommon(value: string): boolean {
  return value.length < LEAST_LENGTH || COMMON.has(value.toLowerCase()) || /^(.)\1*$/su.test(value);
}

/**
 * Tells whether a value under a name that says nothing looks like a secret: long enough, and not plainly a path, an address, a
 * number, a version or a word. What cannot be told counts as a secret; names such as HOME or REGION say that it is none.
 */
export function looksSecret(name: string, value: string): boolean {
  if (value.length < LEAST_UNNAMED_LENGTH || wordsOf(name).some((word) => OPEN_WORDS.has(word))) return false;
  return !isPlainlyOpen(value);
}

/** Tells whether a literal value looks like a key that was made at random, whatever its name. */
export function looksRandom(value: string): boolean {
  if (/^(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abp]|pat|npm|hf|AKIA|AIza|eyJ)[-_A-Za-z0-9.]{12,}$/.test(value))
    return true;
  if (value.length < 20 || !/^[A-Za-z0-9+/=_.~-]+$/.test(value) || isPlainlyOpen(value)) return false;
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(value)).length;
  const digits = value.replace(/\D/g, "").length;
  return (kinds === 3 && digits >= 2) || (kinds === 2 && digits >= 4 && !/[-_.]/.test(value));
}

function isPlainlyOpen(value: string): boolean {
  return [
    /^(?:~|\.{1,2})?[/\\]/, // a path
    /^[A-Za-z]:[/\\]/, // a path of Windows
    /^[a-z][a-z0-9+.-]*:\/\/[^@]*$/i, // an address without credentials
    /^[\w.-]+:\d{1,5}$/, // a host and a port
    /^(?:[a-z0-9-]+\.)+[a-z]{2,}$/i, // a host
    /^\[?[0-9a-f:.]+\]?$/i.test(value) && /[:.]/.test(value) ? /^/ : /$^x/, // a numeric address
    /^[A-Za-z]+(?:[ _-][A-Za-z]+)*$/, // words
    /^-?\d{1,12}(?:\.\d+)*$/, // a number or a version
    /^[^\s@]+@[^\s@]+\.[a-z]+$/i, // an address of a person
  ].some((pattern) => pattern.test(value));
}

/** Takes a name apart at separators and at capitals. */
function wordsOf(name: string): string[] {
  const parts = name.slice(0, 256).replace(/([a-z0-9])([A-Z])/g, "$1 $2");
  return parts
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
}
