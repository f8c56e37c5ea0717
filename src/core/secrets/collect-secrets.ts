import { isPlainObject } from "../json/json-value.ts";
import { parseUrl, percentDecoded } from "../text/parse-url.ts";
import { decodeBase64, encodeBase64 } from "../wire/base64.ts";
import type { SecretMask } from "./secret-mask.ts";
import { isApiCredential, isCertainSecret, isSecretName, looksRandom, looksSecret } from "./secret-names.ts";

/** Where a value stands in a config, or in the options of a source. */
export type SettingPath = readonly (string | number)[];

/** What a text of a config was made of: the values of its references, each with its variable; files have none. */
export interface ReferencedValue {
  readonly variable?: string;
  readonly value: string;
}

/** Adds to the mask what of a text of a config is a secret. */
export function collectSecrets(
  { text, parts }: { readonly text: string; readonly parts: readonly ReferencedValue[] },
  path: SettingPath,
  secrets: SecretMask,
): void {
  const isSecretPlace = isCertainSecret(path) || (isNamedByUser(path) && isSecretName(String(path.at(-1))));
  for (const { variable, value } of parts) {
    const isNamed = variable === undefined || isSecretName(variable);
    if (isSecretPlace || isNamed || looksSecret(variable, value)) addValue(value, secrets);
  }
  if (isSecretPlace) addValue(text, secrets);
  else if (parts.length === 0 && isNamedByUser(path) && looksRandom(text)) secrets.add(text);
  collectAddressSecrets(text, secrets);
}

/** Adds a name and a password as they are sent; without a password the name is the secret. */
export function collectLoginSecrets(login: Readonly<Record<string, unknown>>, secrets: SecretMask): void {
  const { username, password } = login;
  if (typeof username !== "string" || typeof password !== "string") return;
  addLogin(username, password, secrets);
  if (password === "") secrets.add(username);
}

/** `--token=…`, `TOKEN=…` as `docker run -e` takes it, and `Authorization: …` as `--header` does; a plain `sort_key=name` is none. */
const ASSIGNED = /^(?:(--?[\w-]+|[A-Z][A-Z0-9_]*)=|([A-Za-z][\w-]*): ?)(.+)$/s;

/** Adds what of a program's arguments is a secret: what follows `--token`, `TOKEN=` or `X-Api-Key:`, and keys made at random. */
export function collectArgumentSecrets(args: readonly unknown[], secrets: SecretMask): void {
  let previous = "";
  for (const arg of args) {
    if (typeof arg !== "string") continue;
    const [, flag, header, value = ""] = ASSIGNED.exec(arg) ?? [];
    const name = flag ?? header;
    if (name !== undefined && (isSecretName(name) || looksRandom(value))) addValue(value, secrets);
    else if (/^--?[A-Za-z]/.test(previous) && isSecretName(previous) && !arg.startsWith("-"))
      secrets.add(arg);
    else if (looksRandom(arg)) secrets.add(arg);
    previous = arg;
  }
}

/**
 * Adds to the mask what of the options of a source is a secret, as if they stood in a config; the caller of a function of theirs adds
 * what that gives.
 */
export function collectOptionSecrets(value: unknown, path: SettingPath, secrets: SecretMask): void {
  if (typeof value === "string") collectSecrets({ text: value, parts: [] }, path, secrets);
  else if (value instanceof URL) collectSecrets({ text: value.href, parts: [] }, path, secrets);
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) collectOptionSecrets(item, [...path, index], secrets);
    if (path.at(-1) === "args") collectArgumentSecrets(value, secrets);
  } else if (isPlainObject(value)) {
    for (const [name, member] of Object.entries(value))
      collectOptionSecrets(member, [...path, name], secrets);
    if (isApiCredential(path)) collectLoginSecrets(value, secrets);
  }
}

/** Adds a header's value, without the word before it that says how it is meant. */
export function collectHeaderSecret(name: string, value: string, secrets: Pick<SecretMask, "add">): void {
  if (isSecretName(name)) addValue(value, secrets);
  else if (looksRandom(value)) secrets.add(value);
}

/** Members of these are called as the user likes. */
function isNamedByUser(path: SettingPath): boolean {
  const parent = path.at(-2);
  return parent === "env" || parent === "headers" || parent === "serverVariables" || parent === "parameters";
}

/** A header says how the secret is meant before it. */
function addValue(value: string, secrets: Pick<SecretMask, "add">): void {
  const [, scheme, credential] = /^(Bearer|Basic|Token|ApiKey|Digest)\s+(\S.*)$/is.exec(value) ?? [];
  secrets.add(credential ?? value);
  if (scheme?.toLowerCase() !== "basic" || credential === undefined) return;
  const login = loginIn(credential);
  if (login !== undefined) secrets.add(login.slice(login.indexOf(":") + 1));
}

/** Adds the login of an address, and the values of its parameters that are called like secrets. */
function collectAddressSecrets(text: string, secrets: SecretMask): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || parseUrl(text) === undefined) return;
  const address = new URL(text);
  for (const [name, value] of address.searchParams) if (isSecretName(name)) secrets.add(value);
  const [username, password] = [percentDecoded(address.username), percentDecoded(address.password)];
  if (password !== "") secrets.add(password);
  if (username !== "" || password !== "") addLogin(username, password, secrets);
  if (password === "" && looksRandom(username)) secrets.add(username);
}

/** A login as headers have it, without the "=" at its end, which need not be there. */
function addLogin(username: string, password: string, secrets: SecretMask): void {
  const login = encodeBase64(new TextEncoder().encode(`${username}:${password}`)).replace(/=+$/, "");
  secrets.add(login);
  secrets.add(login.replaceAll("+", "-").replaceAll("/", "_"));
}

/** The name and password of a Basic credential, whichever alphabet it is written in. */
function loginIn(credential: string): string | undefined {
  const letters = credential.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  const bytes = decodeBase64(letters.padEnd(Math.ceil(letters.length / 4) * 4, "="));
  return bytes && new TextDecoder().decode(bytes);
}
