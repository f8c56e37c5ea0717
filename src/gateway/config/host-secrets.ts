import { isSecretName, isTooCommon, looksRandom } from "../../core/secrets/secret-names.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { parseReferences } from "./references.ts";

/** Moves secrets that stand in texts out of them, to be kept as environment variables. */
export class HostSecrets {
  /** The secrets by the names of their variables. */
  readonly values: Record<string, string> = {};
  readonly #server: string;

  constructor(server: string) {
    this.#server = server;
  }

  /** The value of an environment variable or header, or the reference that stands for it now. */
  moveNamed(name: string, value: string): string {
    const [, scheme = "", credential = value] =
      /^((?:Bearer|Basic|Token|ApiKey)\s+)(\S.*)$/is.exec(value) ?? [];
    if (hasReference(value) || isTooCommon(credential)) return value;
    if (!isSecretName(name) && !looksRandom(credential)) return value;
    return `${scheme}\${${this.#keep(name, credential)}}`;
  }

  /** The arguments of a program, with references for what follows `--token` or `--api-key=`. */
  moveArguments(args: readonly string[]): string[] {
    return args.map((arg, index) => {
      const [, flag = "", value = ""] = /^(--?[\w-]+=)(.*)$/s.exec(arg) ?? [];
      if (flag !== "") return `${flag}${this.moveNamed(flag.replace(/[-=]+/g, " ").trim(), value)}`;
      const previous = args[index - 1] ?? "";
      const isValue = /^--?[A-Za-z][\w-]*$/.test(previous) && !arg.startsWith("-");
      return this.moveNamed(isValue ? previous : "argument", arg);
    });
  }

  /** An address, with references for its password and for parameters that are called like secrets. */
  moveAddress(address: string): string {
    if (parseUrl(address) === undefined) return address;
    const moved = address.replace(
      /([?&])([^=&#]+)=([^&#]+)/g,
      (_, mark: string, name: string, value: string) => {
        return `${mark}${name}=${this.moveNamed(name, value)}`;
      },
    );
    return moved.replace(/^([a-z]+:\/\/[^/@:]*:)([^/@]+)@/i, (_, start: string, password: string) => {
      return `${start}${this.moveNamed("password", password)}@`;
    });
  }

  /** Variables keep their names where those are free; others stand under the name of the server. */
  #keep(name: string, value: string): string {
    const own = toVariable(name);
    const isOwn = /^[A-Z][A-Z0-9_]*_[A-Z0-9_]+$/.test(name);
    const wanted = isOwn ? own : `${toVariable(this.#server)}_${own}`;
    let free = wanted;
    for (let i = 2; Object.hasOwn(this.values, free) && this.values[free] !== value; i++)
      free = `${wanted}_${i}`;
    this.values[free] = value;
    return free;
  }
}

/** A name that an environment variable can have. */
export function toVariable(name: string): string {
  const upper = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase();
  const plain = upper.replace(/[^A-Z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  return /^[A-Z]/.test(plain) ? plain : `_${plain}`;
}

function hasReference(text: string): boolean {
  try {
    return parseReferences(text).some((part) => !("text" in part));
  } catch {
    return true;
  }
}
