import type { ConfigPath } from "./config-path.ts";
import type { SecretMask } from "./secret-mask.ts";
import { isCertainSecret, isSecretName, looksRandom, looksSecret } from "./secret-names.ts";

/** What a text of a config was made of: the values of its references, each with its variable; files have none. */
export interface ReferencedValue {
  readonly variable?: string;
  readonly value: string;
}

/** Adds to the mask what of a text of a config is a secret. */
export function collectSecrets(
  text: string,
  path: ConfigPath,
  parts: readonly ReferencedValue[],
  secrets: SecretMask,
): void {
  const isSecretPlace = isCertainSecret(path) || (isNamedByUser(path) && isSecretName(String(path.at(-1))));
  for (const { variable, value } of parts) {
    const isNamed = variable === undefined || isSecretName(variable);
    if (isSecretPlace || isNamed || looksSecret(variable, value)) addValue(value, secrets);
  }
  if (isSecretPlace) addValue(text, secrets);
  else if (parts.length === 0 && isNamedByUser(path) && looksRandom(text)) secrets.add(text);
  for (const value of secretsOfAddress(text)) secrets.add(value);
}

/** Adds what of a program's arguments is a secret: what follows `--token` or `--api-key=`, and keys made at random. */
export function collectArgumentSecrets(args: readonly unknown[], secrets: SecretMask): void {
  let previous = "";
  for (const arg of args) {
    if (typeof arg !== "string") continue;
    const [, name, value] = /^--?([\w-]+)=(.*)$/s.exec(arg) ?? [];
    if (name !== undefined && value !== undefined && isSecretName(name)) secrets.add(value);
    else if (/^--?[A-Za-z]/.test(previous) && isSecretName(previous) && !arg.startsWith("-"))
      secrets.add(arg);
    else if (looksRandom(arg)) secrets.add(arg);
    previous = arg;
  }
}

/** Members of these are called as the user likes. */
function isNamedByUser(path: ConfigPath): boolean {
  const parent = path.at(-2);
  return parent === "env" || parent === "headers" || parent === "serverVariables";
}

/** A header says how the secret is meant before it. */
function addValue(value: string, secrets: SecretMask): void {
  const [, scheme, credential] = /^(Bearer|Basic|Token|ApiKey|Digest)\s+(\S.*)$/is.exec(value) ?? [];
  secrets.add(credential ?? value);
  if (scheme?.toLowerCase() !== "basic" || credential === undefined) return;
  const login = Buffer.from(credential, "base64").toString();
  secrets.add(login.slice(login.indexOf(":") + 1));
}

/** The password of an address, and the values of its parameters that are called like secrets. */
function secretsOfAddress(text: string): string[] {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || !URL.canParse(text)) return [];
  const { password, searchParams } = new URL(text);
  const found = [...searchParams].filter(([name]) => isSecretName(name)).map(([, value]) => value);
  if (password !== "") found.push(decode(password));
  return found;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
