import type { ResponseEnvelope } from "../envelope/response-meta.ts";
import { saidIn, toSaid, withoutSaid } from "../errors/source-words.ts";
import { isPlainObject } from "../json/json-value.ts";
import { checkOption } from "../options/check-options.ts";
import { collectHeaderSecret } from "./collect-secrets.ts";
import { maskEnvelope, maskError, maskValue } from "./mask-value.ts";
import { SecretMask } from "./secret-mask.ts";

/** What is passed on of what a source says and repeats; the same options for every kind of source. */
export interface PassedOn {
  /** Passes on, in `details.said` of an error, what the source said when it failed. @default true */
  readonly said?: boolean | undefined;
  /** Masks credentials of 16 characters or more in results as well, each named in `meta.waybill.masked`. @default true */
  readonly maskResults?: boolean | undefined;
  /** Values that are masked like credentials. @default none but the credentials */
  readonly secrets?: readonly string[] | undefined;
}

/** Refuses options of `PassedOn` that cannot work with a `TypeError`, which shows no secret. */
export function checkPassedOn({ said, maskResults, secrets }: PassedOn): void {
  checkOption("said", said, "true or false", typeof said === "boolean");
  checkOption("maskResults", maskResults, "true or false", typeof maskResults === "boolean");
  const isTexts = Array.isArray(secrets) && secrets.every((secret) => typeof secret === "string");
  if (secrets !== undefined && !isTexts) throw new TypeError("secrets must be a list of texts.");
}

/** Shorter secrets may stand in a result by chance, and are masked in errors alone. */
const LEAST_IN_RESULTS = 16;
/** Tokens had at run time that are remembered at least; the oldest go first. */
const MOST_OBTAINED = 256;

/** The secrets of one source, and what of its answers is passed on. */
export class SourceSecrets {
  readonly #options: PassedOn;
  readonly #known: Masks;
  /** Had at run time, in two generations: what is old and no longer used is forgotten. */
  #obtained = new Masks();
  #earlier: Masks | undefined;
  /** Paths of this machine that a source may know. */
  readonly #paths: readonly string[];

  /** `known` are the credentials among the options of the source. */
  constructor(known: SecretMask = new SecretMask(), options: PassedOn = {}, paths: readonly string[] = []) {
    this.#options = options;
    this.#known = new Masks();
    for (const value of [...known.values, ...(options.secrets ?? [])]) this.#known.add(value);
    this.#paths = paths.filter((path) => path.length >= 4);
  }

  /** Makes a value that was had at run time a secret, such as a token. */
  obtained(value: string): void {
    if (this.#known.all.values.has(value) || this.#obtained.all.values.has(value)) return;
    if (this.#obtained.all.values.size >= MOST_OBTAINED) {
      this.#earlier = this.#obtained;
      this.#obtained = new Masks();
    }
    this.#obtained.add(value);
  }

  /** Makes the credential in a header that is sent a secret. */
  obtainedHeader(name: string, value: string): void {
    collectHeaderSecret(name, value, { add: (secret) => this.obtained(secret) });
  }

  /** Takes every secret out of a text. */
  readonly mask = (text: string): string => this.#masks().reduce((masked, { all }) => all.mask(masked), text);

  /** Takes every secret out of a value that becomes part of an error. */
  maskAll<T>(value: T): T {
    return this.#masks().reduce((masked, { all }) => maskValue(masked, all), value);
  }

  /** Gives what the source said as it is passed on: in `said`, or not at all. */
  saying(words: string | undefined): { readonly said?: string } {
    if (words === undefined || this.#options.said === false) return {};
    const said = toSaid(words, (text) => this.#hidePaths(this.mask(text)));
    return said === undefined ? {} : { said };
  }

  /** Details that came from another Waybill: of its words, those in `said`, or else what it says for people. */
  passDetails(details: unknown, sentence?: string): unknown {
    const { said } = this.saying(saidIn(details) ?? sentence);
    const others = this.maskAll(withoutSaid(details));
    if (said === undefined) return others;
    return isPlainObject(others) ? { ...others, said } : { said };
  }

  /** The error with every secret masked; the same one where there is none. Other things are given back as they are. */
  maskError(thrown: unknown): unknown {
    return this.#masks().reduce((masked, { all }) => maskError(masked, all), thrown);
  }

  /** The result with every long secret masked, unless that is turned off; one that is an error with every secret. */
  maskEnvelope(envelope: ResponseEnvelope): ResponseEnvelope {
    const isError = envelope.meta.isError === true;
    if (!isError && this.#options.maskResults === false) return envelope;
    return this.#masks().reduce(
      (masked, { all, long }) => maskEnvelope(masked, isError ? all : long),
      envelope,
    );
  }

  /** The same for whatever else a source answers with. */
  maskResult<T>(value: T): T {
    if (this.#options.maskResults === false) return value;
    return this.#masks().reduce((masked, { long }) => maskValue(masked, long), value);
  }

  #masks(): readonly Masks[] {
    return [this.#known, this.#obtained, this.#earlier].filter(
      (masks) => masks !== undefined && masks.all.values.size > 0,
    ) as Masks[];
  }

  /** A path of this machine goes up to where a path ends. */
  #hidePaths(text: string): string {
    return this.#paths.reduce((shown, path) => {
      const parts = shown.split(path);
      return parts
        .map((part, index) => (index === 0 ? part : `[path]${part.replace(/^[^\s"'`<>()[\]{},;]*/, "")}`))
        .join("");
    }, text);
  }
}

/** All secrets of one kind, and those that are looked for in results too. */
class Masks {
  readonly all = new SecretMask();
  readonly long = new SecretMask();

  add(value: string): void {
    this.all.add(value);
    if (value.length >= LEAST_IN_RESULTS) this.long.add(value);
  }
}
