import { adoptEnvelope } from "../../core/envelope/envelope.ts";
import type { ResponseEnvelope, ResponseMeta, ResultFinding } from "../../core/envelope/response-meta.ts";
import { CallError, changedError, isCallError } from "../../core/errors/errors.ts";
import { joinPointer } from "../../core/json/json-pointer.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { rewriteTexts, type TextRewriter } from "../../core/json/rewrite-texts.ts";
import { checkDelay, checkOption } from "../../core/options/check-options.ts";
import { RESULT_META_KEY } from "../../core/result/tool-result.ts";
import { isSecretName } from "../../core/secrets/secret-names.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import {
  findInText,
  GUARD_KINDS,
  type GuardKind,
  isRandom,
  type TextMatch,
  type TextSearch,
} from "./text-rules.ts";

/** What is done where something is found: nothing, a note in the facts, stars in its place, or an error in place of the result. */
export type GuardAction = "off" | "mark" | "mask" | "withhold";

/** What is looked for in what a source answers, and what is done where it is found. */
export interface GuardPolicy {
  /** Keys, tokens, passwords and private keys, by the formats of those that issue them. @default "off" */
  readonly credentials?: GuardAction | undefined;
  /** Numbers of payment cards, by issuer and check digit. @default "off" */
  readonly cards?: GuardAction | undefined;
  /** Characters that nobody sees or that terminals act on. @default "off" */
  readonly hidden?: GuardAction | undefined;
  /** Links to hosts that `linkHosts` does not name. @default "off" */
  readonly links?: GuardAction | undefined;
  /** Hosts that links may lead to, as patterns such as `*.example.com`. @default none */
  readonly linkHosts?: readonly string[] | undefined;
  /** A service that is asked about every text of a result. @default none */
  readonly judge?: JudgeOptions | undefined;
}

/** How a judge outside of the gateway is asked. */
export interface JudgeOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds that it may take. @default 5_000 */
  readonly timeoutMs?: number | undefined;
  /** What becomes of a result that it did not judge, because it failed or the result is too large for it. @default "withhold" */
  readonly otherwise?: "mark" | "withhold" | undefined;
}

/** One text of a result, as a judge is asked about it. */
export interface JudgedText {
  readonly pointer: string;
  readonly text: string;
}

/** What a judge says about one text. */
export interface Judgement {
  readonly pointer: string;
  /** Names what was found, such as `email-address`. */
  readonly rule: string;
  readonly action: Exclude<GuardAction, "off">;
}

/** Judges the texts of a result; throws where it cannot. */
export type Judge = (
  asked: { readonly operation: string; readonly texts: readonly JudgedText[] },
  signal: AbortSignal | undefined,
) => Promise<readonly Judgement[]>;

/** Bounds of what one result may take. */
export const GUARD_LIMITS = {
  /** Characters that are looked at; a larger result counts as one that holds something. */
  characters: 33_554_432,
  /** Findings that are named; what is masked is masked everywhere. */
  findings: 100,
  /** Characters of the pointer of a finding; a longer one is cut to that of a value around it. */
  pointer: 1_024,
  /** Characters of all texts that are sent to a judge. */
  judgedCharacters: 262_144,
} as const;

/** Numbers from here on have as many digits as those of payment cards. */
const LEAST_NUMBER = 1e12;
const STARS = "***";

/** Throws a `TypeError` that names what no guard could work by. */
export function checkGuard(what: string, guard: GuardPolicy): void {
  const { judge, linkHosts } = guard;
  for (const kind of GUARD_KINDS) {
    const action = guard[kind];
    checkOption(`${what}.${kind}`, action, "off, mask, mark or withhold", ACTIONS.includes(action as string));
  }
  const isHosts = Array.isArray(linkHosts) && linkHosts.every((host) => typeof host === "string");
  checkOption(`${what}.linkHosts`, linkHosts, "a list of patterns of hosts", isHosts);
  if (judge === undefined) return;
  const isHttp = /^https?:$/.test(parseUrl(judge.url)?.protocol ?? "");
  checkOption(`${what}.judge.url`, judge.url, "an address that begins with http: or https:", isHttp);
  checkDelay(`${what}.judge.timeoutMs`, judge.timeoutMs);
}

const ACTIONS: readonly string[] = ["off", "mark", "mask", "withhold"];

/** Looks through the results of one operation as its policy says. */
export class ResultGuard {
  readonly #actions: ReadonlyMap<string, Exclude<GuardAction, "off">>;
  readonly #search: TextSearch;
  readonly #otherwise: "mark" | "withhold";
  readonly #judge: Judge | undefined;

  constructor(policy: GuardPolicy, judge?: Judge) {
    const wanted = GUARD_KINDS.flatMap((kind) => {
      const action = policy[kind] ?? "off";
      return action === "off" ? [] : [[kind, action] as const];
    });
    this.#actions = new Map(wanted);
    this.#search = { kinds: new Set(wanted.map(([kind]) => kind)), linkHosts: policy.linkHosts ?? [] };
    this.#otherwise = policy.judge?.otherwise ?? "withhold";
    this.#judge = judge;
  }

  /** Gives a result as it may go on, its findings named; throws `WITHHELD` where it may not. */
  async envelope(
    operation: string,
    envelope: ResponseEnvelope,
    signal?: AbortSignal,
  ): Promise<ResponseEnvelope> {
    const { data, meta } = envelope;
    const { value, findings } = await this.#guard(operation, { data, meta }, signal);
    if (findings.length === 0) return envelope;
    const shown = value as { readonly data: unknown; readonly meta: ResponseMeta };
    const known = meta.waybill?.findings ?? [];
    const waybill = { ...shown.meta.waybill, findings: mostOf([...known, ...findings]) };
    return adoptEnvelope({ data: shown.data, meta: { ...shown.meta, waybill } as ResponseMeta });
  }

  /** The same for an object of MCP that is no tool result, such as the contents of a resource: findings stand in its `_meta`. */
  async object<T>(name: string, given: T, signal?: AbortSignal): Promise<T> {
    const { value, findings } = await this.#guard(name, given, signal);
    if (findings.length === 0 || !isPlainObject(value)) return given;
    const meta = isPlainObject(value["_meta"]) ? value["_meta"] : {};
    const facts = isPlainObject(meta[RESULT_META_KEY]) ? meta[RESULT_META_KEY] : {};
    const named = { ...meta, [RESULT_META_KEY]: { ...facts, findings: mostOf(findings) } };
    return { ...value, _meta: named } as T;
  }

  /** An error goes on in any case; of what it says, that which is to be masked or withheld is masked. */
  error(thrown: unknown): unknown {
    if (!isCallError(thrown)) return thrown;
    const walk = new GuardWalk(this.#search, (kind) => {
      const action = this.#actions.get(kind);
      return action === "withhold" ? "mask" : action;
    });
    const message = walk.text(thrown.message, "");
    const details = rewriteTexts(thrown.details, "", walk);
    const isSame = message === thrown.message && details === thrown.details;
    return isSame ? thrown : changedError(thrown, { message, details });
  }

  async #guard(
    name: string,
    given: unknown,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly value: unknown; readonly findings: readonly ResultFinding[] }> {
    const walk = new GuardWalk(this.#search, (kind) => this.#actions.get(kind), this.#judge !== undefined);
    const looked = rewriteTexts(given, "", walk);
    if (walk.isTooLarge) {
      const worst = [...this.#actions.values()].some((action) => action !== "mark");
      walk.note({ kind: "guard", rule: "too-large", pointer: "", action: worst ? "withhold" : "mark" });
    }
    if (walk.isWithheld || this.#judge === undefined) return this.#ended(name, looked, walk);
    const judged = await this.#judged(name, walk, signal);
    const hidden = new Set(judged.filter(({ action }) => action === "mask").map(({ pointer }) => pointer));
    for (const { pointer, rule, action } of judged) walk.note({ kind: "judge", rule, pointer, action });
    const value = hidden.size === 0 ? looked : rewriteTexts(looked, "", new PlaceMask(hidden, this.#search));
    return this.#ended(name, value, walk);
  }

  #ended(name: string, value: unknown, walk: GuardWalk) {
    const findings = [...walk.findings.values()];
    if (walk.isWithheld) throw withheld(name, findings);
    return { value, findings };
  }

  async #judged(
    operation: string,
    { texts, isTooLong }: GuardWalk,
    signal: AbortSignal | undefined,
  ): Promise<readonly Judgement[]> {
    const unjudged = { pointer: "", rule: "not-judged", action: this.#otherwise };
    if (texts.length === 0 || this.#judge === undefined) return isTooLong ? [unjudged] : [];
    try {
      const said = await this.#judge({ operation, texts }, signal);
      return isTooLong ? [...said, unjudged] : said;
    } catch {
      signal?.throwIfAborted();
      return [unjudged];
    }
  }
}

function mostOf(findings: readonly ResultFinding[]): readonly ResultFinding[] {
  return findings.slice(0, GUARD_LIMITS.findings);
}

/** The operation has run, whatever becomes of its result: the error says so. */
function withheld(operation: string, findings: readonly ResultFinding[]): CallError {
  return new CallError(
    "WITHHELD",
    `"${operation}" has run. Its result is withheld, because a guard of the gateway found something in it.`,
    { details: { findings: mostOf(findings) }, stack: false },
  );
}

/** What was found in a result that was withheld. */
export function withheldFindings(thrown: unknown): readonly ResultFinding[] {
  if (!isCallError(thrown) || thrown.code !== "WITHHELD" || !isPlainObject(thrown.details)) return [];
  return (thrown.details["findings"] as readonly ResultFinding[] | undefined) ?? [];
}

/** What was found at a place, and what is done about it. */
interface NotedMatch {
  readonly kind: string;
  readonly rule: string;
  readonly pointer: string;
  readonly action: Exclude<GuardAction, "off">;
  /** How often it was found there. @default 1 */
  readonly times?: number;
}

/** Looks at every text of a value once, notes what is found where, and masks what is to be masked. */
class GuardWalk implements TextRewriter {
  readonly leastNumber = LEAST_NUMBER;
  readonly findings = new Map<string, ResultFinding>();
  /** What a judge is asked about. */
  readonly texts: JudgedText[] = [];
  isWithheld = false;
  /** Whether some of the value was not looked at. */
  isTooLarge = false;
  /** Whether some of the value is not among the texts for a judge. */
  isTooLong = false;
  readonly #search: TextSearch;
  readonly #actionOf: (kind: GuardKind) => Exclude<GuardAction, "off"> | undefined;
  readonly #isJudged: boolean;
  #characters = 0;
  #judgedCharacters = 0;

  constructor(
    search: TextSearch,
    actionOf: (kind: GuardKind) => Exclude<GuardAction, "off"> | undefined,
    isJudged = false,
  ) {
    this.#search = search;
    this.#actionOf = actionOf;
    this.#isJudged = isJudged;
  }

  text(text: string, at: string, key?: string): string {
    this.#characters += text.length;
    if (this.#characters > GUARD_LIMITS.characters) {
      this.isTooLarge = true;
      return text;
    }
    if (isBytes(text)) return text;
    const looked = this.#looked(text, at, key);
    // What is masked is not shown to a judge either.
    if (this.#isJudged) this.#take(looked, at);
    return looked;
  }

  key(name: string, at: string): { readonly name: string; readonly shown: string } {
    this.#characters += name.length;
    if (this.#characters > GUARD_LIMITS.characters) {
      this.isTooLarge = true;
      return { name, shown: name };
    }
    const matches = this.#find(name, undefined);
    if (matches.length === 0) return { name, shown: name };
    // A pointer never shows what was found, so the member is named by what is left of its name.
    const shown = withoutMatches(name, matches);
    this.#noteMatches(matches, joinPointer(at, shown));
    return { name: this.#masked(name, matches), shown };
  }

  note({ kind, rule, pointer, action, times = 1 }: NotedMatch): void {
    if (action === "withhold") this.isWithheld = true;
    // A place that comes later is not looked for among those that are named: long pointers would take long.
    if (this.findings.size >= GUARD_LIMITS.findings) return;
    const named = pointerWithin(pointer, GUARD_LIMITS.pointer);
    const id = JSON.stringify([kind, rule, named]);
    const count = (this.findings.get(id)?.count ?? 0) + times;
    this.findings.set(id, { kind, rule, pointer: named, count, ...(action === "mask" && { masked: true }) });
  }

  #looked(text: string, at: string, key: string | undefined): string {
    const matches = this.#find(text, key);
    if (matches.length === 0) return text;
    this.#noteMatches(matches, at);
    const masked = this.#masked(text, matches);
    if (!matches.some(({ kind }) => kind === "hidden")) return masked;
    // Hidden characters may stand in the middle of what rules find: without them, more may be found.
    const more = this.#find(cleanText(withoutMatches(text, matches)).text, key);
    if (more.length === 0) return masked;
    this.#noteMatches(more, at);
    if (!more.some(({ kind }) => this.#actionOf(kind) === "mask")) return masked;
    const cleaned = cleanText(masked).text;
    return this.#masked(cleaned, this.#find(cleaned, key));
  }

  #masked(text: string, matches: readonly TextMatch[]): string {
    return withoutMatches(
      text,
      matches.filter(({ kind }) => this.#actionOf(kind) === "mask"),
    );
  }

  #find(text: string, key: string | undefined): readonly TextMatch[] {
    const matches = findInText(text, this.#search);
    const isNamed = key !== undefined && this.#search.kinds.has("credentials") && isSecretName(key);
    if (!isNamed || matches.some(({ kind }) => kind === "credentials") || !isRandom(text)) return matches;
    if (text.length < LEAST_NAMED || text.length > MOST_NAMED || /\s/.test(text)) return matches;
    return [...matches, { kind: "credentials", rule: "named-secret", at: 0, end: text.length }];
  }

  /** One note for all that a rule found in one text. */
  #noteMatches(matches: readonly TextMatch[], pointer: string): void {
    const counts = new Map<string, { readonly kind: GuardKind; times: number }>();
    for (const { kind, rule } of matches) {
      const known = counts.get(rule);
      if (known === undefined) counts.set(rule, { kind, times: 1 });
      else known.times += 1;
    }
    for (const [rule, { kind, times }] of counts) {
      const action = this.#actionOf(kind);
      if (action !== undefined) this.note({ kind, rule, pointer, action, times });
    }
  }

  #take(text: string, pointer: string): void {
    this.#judgedCharacters += text.length;
    if (this.#judgedCharacters > GUARD_LIMITS.judgedCharacters) this.isTooLong = true;
    else this.texts.push({ pointer, text });
  }
}

/** Lengths that the value of a member with a name such as `apiKey` has, if it is a secret. */
const LEAST_NAMED = 12;
const MOST_NAMED = 512;

/** Long texts in nothing but the alphabet of base64 are pictures and other bytes. */
function isBytes(text: string): boolean {
  return text.length >= 1_024 && /^[A-Za-z0-9+/_-]+={0,2}$/.test(text);
}

/** The text with stars in place of what was found; hidden characters are taken out. */
function withoutMatches(text: string, matches: readonly TextMatch[]): string {
  if (matches.length === 0) return text;
  let shown = "";
  let from = 0;
  const places = matches.filter(({ kind }) => kind !== "hidden");
  for (const { at, end } of [...places].sort((a, b) => a.at - b.at)) {
    if (end <= from) continue;
    shown += at < from ? "" : text.slice(from, at) + STARS;
    from = end;
  }
  shown += text.slice(from);
  return places.length === matches.length ? shown : cleanText(shown).text;
}

/** The pointer, or that of the nearest value around whose pointer is short enough. */
function pointerWithin(pointer: string, characters: number): string {
  if (pointer.length <= characters) return pointer;
  return pointer.slice(0, Math.max(0, pointer.lastIndexOf("/", characters)));
}

/** Masks whole texts at places that a judge named. */
class PlaceMask implements TextRewriter {
  readonly leastNumber = LEAST_NUMBER;
  readonly #places: ReadonlySet<string>;
  readonly #search: TextSearch;

  constructor(places: ReadonlySet<string>, search: TextSearch) {
    this.#places = places;
    this.#search = search;
  }

  text(text: string, at: string): string {
    return this.#places.has(at) ? STARS : text;
  }

  /** Places are named without what was found in the names of members. */
  key(name: string): { readonly name: string; readonly shown: string } {
    return { name, shown: withoutMatches(name, findInText(name, this.#search)) };
  }
}
