import { parseUrl } from "../../core/text/parse-url.ts";
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

/** Adds the login of an address, and the values of its parameters that are called like secrets. */
function collectAddressSecrets(text: string, secrets: SecretMask): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || parseUrl(text) === undefined) return;
  const address = new URL(text);
  for (const [name, value] of address.searchParams) if (isSecretName(name)) secrets.add(value);
  const [username, password] = [decode(address.username), decode(address.password)];
  if (password !== "") secrets.add(password);
  if (username !== "" || password !== "") addLogin(username, password, secrets);
  if (password === "" && looksRandom(username)) secrets.add(username);
}

/** A login as headers have it, without the "=" at its end, which need not be there. */
function addLogin(username: string, password: string, secrets: SecretMask): void {
  const login = Buffer.from(`${username}:${password}`);
  for (const form of ["base64", "base64url"] as const) secrets.add(login.toString(form).replace(/=+$/, ""));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
